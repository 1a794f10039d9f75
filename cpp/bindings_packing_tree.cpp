// Python bindings of the tree of packings.

#include "bindings.hpp"
#include "bindings_rounds.hpp"
#include "packing_tree.hpp"

namespace ellipack {

namespace {

TreeLevels levels_of(const Vector& lipschitz, const IntVector& dimensions, const IntVector& rank_starts) {
  return {vector_of(lipschitz), vector_of(dimensions), vector_of(rank_starts)};
}

void restore_tree(PackingTreeCore* self, const Matrix& points, const IntVector& parents, const Vector& sums,
                  const IntVector& counts, const Vector& log_weights, const Vector& lipschitz,
                  const IntVector& dimensions, const IntVector& rank_starts, const DeferredCalibration& calibration) {
  TreeNodes nodes{vector_of(points), vector_of(parents), vector_of(sums), vector_of(counts), vector_of(log_weights)};
  new (self)
      PackingTreeCore(points.shape(1), levels_of(lipschitz, dimensions, rank_starts), std::move(nodes), calibration);
}

nb::tuple tree_arrays(const PackingTreeCore& core) {
  std::pair<TreeNodes, DeferredCalibration> state;
  {
    const nb::gil_scoped_release release;  // it may wait for a thread that learns
    state = core.nodes_and_calibration();
  }
  auto& [nodes, calibration] = state;
  const std::size_t count = nodes.size();
  const TreeLevels& levels = core.levels();
  return nb::make_tuple(to_numpy(std::move(nodes.points), {count, core.dimension()}),
                        to_numpy(std::move(nodes.parents)), to_numpy(std::move(nodes.label_sums)),
                        to_numpy(std::move(nodes.label_counts)), to_numpy(std::move(nodes.log_weights)),
                        as_vector(levels.lipschitz), to_numpy(std::vector(levels.dimensions)),
                        to_numpy(std::vector(levels.rank_starts)), calibration);
}

}  // namespace

void bind_packing_tree(nb::module_& m) {
  constexpr auto owned = nb::rv_policy::take_ownership;
  const auto without_gil = nb::call_guard<nb::gil_scoped_release>();
  nb::class_<PackingTreeCore> core(
      m, "PackingTreeCore",
      "Locally adaptive regression in whitened coordinates. Threads may predict while one learns.");
  bind_calibration(core);
  core.def(
          "__init__",
          [](PackingTreeCore* self, const Vector& lipschitz, const IntVector& dimensions,
             const IntVector& rank_starts) {
            new (self) PackingTreeCore(rank_starts.size() + 1, levels_of(lipschitz, dimensions, rank_starts));
          },
          nb::arg("lipschitz"), nb::arg("dimensions"), nb::arg("rank_starts"))
      .def("__init__", &restore_tree, nb::arg("points"), nb::arg("parents"), nb::arg("label_sums"),
           nb::arg("label_counts"), nb::arg("log_weights"), nb::arg("lipschitz"), nb::arg("dimensions"),
           nb::arg("rank_starts"), nb::arg("calibration") = DeferredCalibration())
      .def("learn", &learn_rows<PackingTreeCore>, nb::arg("coordinates"), nb::arg("labels"),
           nb::arg("bounds").noconvert() = nb::none(), nb::arg("positions") = nb::none(),
           "Run one round per row. Return the predictions, each made before its label was learned, and fill `bounds` "
           "with their intervals at `positions` among the coverages.")
      .def("predict", &predict_rows<PackingTreeCore>, nb::arg("coordinates"),
           nb::arg("bounds").noconvert() = nb::none(), nb::arg("positions") = nb::none(),
           "Return the prediction for each row, 1/2 before the first round, and fill `bounds` with their intervals at "
           "`positions` among the coverages.")
      .def("copy", &copy_core<PackingTreeCore>, owned, "Return an independent copy.")
      .def(
          "__deepcopy__", [](const PackingTreeCore& core, const nb::handle&) { return copy_core(core); }, owned,
          nb::arg("memo"))
      .def("to_arrays", &tree_arrays,
           nb::sig("def to_arrays(self) -> tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.float64], "
                   "NDArray[numpy.int64], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.int64], "
                   "NDArray[numpy.int64], DeferredCalibration]"),
           "Return the arguments of an equal core: points, parents, label_sums, label_counts, log_weights, lipschitz, "
           "dimensions, rank_starts and calibration.")
      .def(
          "__reduce__",
          [](const PackingTreeCore& core) { return nb::make_tuple(nb::type<PackingTreeCore>(), tree_arrays(core)); },
          reduce_signature())
      .def_prop_ro("dimension", &PackingTreeCore::dimension)
      .def_prop_ro("size", &PackingTreeCore::size, without_gil, "Number of nodes.")
      .def_prop_ro("clock", &PackingTreeCore::clock, without_gil, "Number of rounds.");
}

}  // namespace ellipack
