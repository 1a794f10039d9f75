// The Python module: each kind of thing is registered by a file of its own.

#include "bindings.hpp"

NB_MODULE(ELLIPACK_MODULE, m) {
  m.doc() = "Compiled cores: they own their arrays and run rounds; Python decides.";
  nanobind::set_leak_warnings(false);
  ellipack::bind_aggregation(m);
  ellipack::bind_gradients(m);
  ellipack::bind_kd_tree(m);
  ellipack::bind_local_models(m);
  ellipack::bind_metric_core(m);
  ellipack::bind_packing(m);
}
