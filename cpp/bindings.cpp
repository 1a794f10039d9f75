// The Python module. Each bindings_*.cpp file registers one group of classes and functions.

#include "bindings.hpp"

NB_MODULE(ELLIPACK_MODULE, m) {
  m.doc() = "Compiled core of ellipack: arrays, rounds, neighbor search and scoring.";
  nanobind::set_leak_warnings(false);
  ellipack::bind_aggregation(m);
  ellipack::bind_gradients(m);
  ellipack::bind_kd_tree(m);
  ellipack::bind_local_models(m);
  ellipack::bind_metric_parts(m);
  ellipack::bind_past(m);
  ellipack::bind_metric_core(m);
  ellipack::bind_packing(m);
  ellipack::bind_packing_classifier(m);
}
