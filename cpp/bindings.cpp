// The Python module. Each bindings_*.cpp file registers one group of classes and functions.

#include "bindings.hpp"

#include "checks.hpp"
#include "fork_gate.hpp"

NB_MODULE(ELLIPACK_MODULE, m) {
  using namespace nanobind::literals;
  m.doc() = "Compiled core of ellipack: arrays, rounds, neighbor search and scoring.";
  nanobind::set_leak_warnings(false);
  ellipack::bind_aggregation(m);
  ellipack::bind_conformal(m);
  ellipack::bind_gradients(m);
  ellipack::bind_importance(m);
  ellipack::bind_intrinsic_dimension(m);
  ellipack::bind_kd_tree(m);
  ellipack::bind_local_models(m);
  ellipack::bind_metric_parts(m);
  ellipack::bind_past(m);
  ellipack::bind_metric_core(m);
  ellipack::bind_packing(m);
  ellipack::bind_packing_classifier(m);
  ellipack::bind_packing_tree(m);
  m.def(
      "all_between",
      [](const nanobind::ndarray<const double, nanobind::c_contig, nanobind::device::cpu>& array, double least,
         double most) { return ellipack::all_between(ellipack::span_of(array), least, most); },
      "array"_a, "least"_a, "most"_a, "Return whether all entries of an array are finite and from `least` to `most`.");
  m.def(
      "close_fork_gate", [] { ellipack::fork_gate.close(); }, nanobind::call_guard<nanobind::gil_scoped_release>(),
      "Wait until no thread is in a core, and keep threads out until the gate is open.");
  m.def("open_fork_gate", [] { ellipack::fork_gate.open(); }, "Open the gate in the parent after a fork.");
  m.def("open_fork_gate_in_child", [] { ellipack::fork_gate.open_in_child(); }, "Open the gate in a forked child.");
}
