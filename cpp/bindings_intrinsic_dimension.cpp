// Python bindings of Algorithm 1 with radii that adapt to the dimension of the rows.

#include "bindings.hpp"
#include "bindings_rounds.hpp"
#include "intrinsic_dimension.hpp"

namespace ellipack {

namespace {

void restore_core(IntrinsicDimensionCore* self, const Matrix& coordinates, const Vector& sums, const IntVector& counts,
                  const IntVector& creation_rounds, std::int64_t offset, std::int64_t dimension,
                  std::int64_t phase_centers, const DeferredCalibration& calibration) {
  PackingCenters centers(span_of(coordinates), coordinates.shape(1), vector_of(sums), vector_of(counts),
                         vector_of(creation_rounds));
  std::int64_t rounds = 0;
  for (const std::int64_t count : centers.label_counts) {
    rounds = std::min(rounds + count, std::int64_t{1} << 53);  // each count is at most 2^52
  }
  new (self) IntrinsicDimensionCore(std::move(centers), offset, {rounds, dimension, phase_centers}, calibration);
}

nb::tuple core_arrays(const IntrinsicDimensionCore& core) {
  struct State {
    std::vector<double> coordinates;
    std::vector<double> sums;
    std::vector<std::int64_t> counts;
    std::vector<std::int64_t> rounds;
    DimensionClock clock;
    DeferredCalibration calibration;
  };
  State state;
  {
    const nb::gil_scoped_release release;  // it may wait for a thread that learns
    state = core.inspect(
        [](const PackingCenters& centers, const DimensionClock& clock, const DeferredCalibration& calibration) {
          return State{centers.points.points(),
                       centers.label_sums,
                       centers.label_counts,
                       centers.creation_rounds,
                       clock,
                       calibration};
        });
  }
  const std::size_t count = state.sums.size();
  return nb::make_tuple(to_numpy(std::move(state.coordinates), {count, core.dimension()}),
                        to_numpy(std::move(state.sums)), to_numpy(std::move(state.counts)),
                        to_numpy(std::move(state.rounds)), core.offset(), state.clock.dimension,
                        state.clock.phase_centers, state.calibration);
}

}  // namespace

void bind_intrinsic_dimension(nb::module_& m) {
  constexpr auto owned = nb::rv_policy::take_ownership;
  const auto without_gil = nb::call_guard<nb::gil_scoped_release>();
  nb::class_<IntrinsicDimensionCore> core(
      m, "IntrinsicDimensionCore",
      "Algorithm 1 in whitened coordinates, with radii that adapt to the dimension of the rows. Threads may predict "
      "while one learns.");
  bind_calibration(core);
  core.def(nb::init<std::size_t, std::int64_t>(), nb::arg("dimension"), nb::arg("offset"))
      .def("__init__", &restore_core, nb::arg("coordinates"), nb::arg("label_sums"), nb::arg("label_counts"),
           nb::arg("creation_rounds"), nb::arg("offset"), nb::arg("intrinsic_dimension"), nb::arg("phase_centers"),
           nb::arg("calibration") = DeferredCalibration())
      .def("learn", &learn_rows<IntrinsicDimensionCore>, nb::arg("coordinates"), nb::arg("labels"),
           nb::arg("bounds").noconvert() = nb::none(), nb::arg("positions") = nb::none(),
           "Run one round per row. Return the predictions, each made before its label was learned, and fill `bounds` "
           "with their intervals at `positions` among the coverages.")
      .def("predict", &predict_rows<IntrinsicDimensionCore>, nb::arg("coordinates"),
           nb::arg("bounds").noconvert() = nb::none(), nb::arg("positions") = nb::none(),
           "Return the prediction for each row, 1/2 before the first round, and fill `bounds` with their intervals at "
           "`positions` among the coverages.")
      .def("copy", &copy_core<IntrinsicDimensionCore>, owned, "Return an independent copy.")
      .def(
          "__deepcopy__", [](const IntrinsicDimensionCore& core, const nb::handle&) { return copy_core(core); }, owned,
          nb::arg("memo"))
      .def("to_arrays", &core_arrays,
           nb::sig("def to_arrays(self) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.int64], "
                   "NDArray[numpy.int64], int, int, int, DeferredCalibration]"),
           "Return the arguments of an equal core: coordinates, label_sums, label_counts, creation_rounds, offset, "
           "intrinsic_dimension, phase_centers and calibration.")
      .def(
          "__reduce__",
          [](const IntrinsicDimensionCore& core) {
            return nb::make_tuple(nb::type<IntrinsicDimensionCore>(), core_arrays(core));
          },
          reduce_signature())
      .def_prop_ro("dimension", &IntrinsicDimensionCore::dimension)
      .def_prop_ro("offset", &IntrinsicDimensionCore::offset)
      .def_prop_ro("size", &IntrinsicDimensionCore::size, without_gil, "Number of centers.")
      .def_prop_ro(
          "clock", [](const IntrinsicDimensionCore& core) { return core.clock().rounds; }, without_gil,
          "Number of rounds.")
      .def_prop_ro(
          "intrinsic_dimension", [](const IntrinsicDimensionCore& core) { return core.clock().dimension; }, without_gil,
          "Estimate of the dimension of the rows.");
}

}  // namespace ellipack
