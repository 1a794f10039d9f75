// Python bindings of Algorithm 1 and of its scaling of rows and labels.

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <tuple>

#include "bindings.hpp"
#include "bindings_rounds.hpp"
#include "checks.hpp"
#include "packing_core.hpp"
#include "rescaled_packing.hpp"
#include "unit_box.hpp"

namespace ellipack {

namespace {

// ---- PackingCore

void restore_packing(PackingCore* self, const Matrix& coordinates, const Vector& sums, const IntVector& counts,
                     const IntVector& creation_rounds, const IntVector& rank_starts, std::int64_t clock,
                     const DeferredCalibration& calibration) {
  PackingCenters centers(span_of(coordinates), coordinates.shape(1), vector_of(sums), vector_of(counts),
                         vector_of(creation_rounds));
  new (self) PackingCore(std::move(centers), vector_of(rank_starts), clock, calibration);
}

struct PackingArrays {
  std::vector<double> coordinates;
  std::vector<double> label_sums;
  std::vector<std::int64_t> label_counts;
  std::vector<std::int64_t> creation_rounds;
  std::int64_t clock;
  DeferredCalibration calibration;
};

// Calls core.inspect without the GIL, because it may wait for a thread that learns.
template <typename Function>
auto inspect(const PackingCore& core, Function function) {
  const nb::gil_scoped_release release;
  return core.inspect(function);
}

FloatArray coordinates_array(const PackingCore& core, std::vector<double>&& coordinates) {
  const std::size_t count = coordinates.size() / core.dimension();
  return to_numpy(std::move(coordinates), {count, core.dimension()});
}

IntArray rank_starts_array(const PackingCore& core) {
  return copy_to_numpy(core.rank_starts(), {core.rank_starts().size()});
}

using PackingState =
    std::tuple<FloatArray, FloatArray, IntArray, IntArray, IntArray, std::int64_t, DeferredCalibration>;

PackingState packing_arrays(const PackingCore& core) {
  PackingArrays state = inspect(core, [](const PackingCenters& centers, std::int64_t clock,
                                         const DeferredCalibration& calibration) {
    return PackingArrays{
        centers.points.points(), centers.label_sums, centers.label_counts, centers.creation_rounds, clock, calibration};
  });
  return {coordinates_array(core, std::move(state.coordinates)),
          to_numpy(std::move(state.label_sums)),
          to_numpy(std::move(state.label_counts)),
          to_numpy(std::move(state.creation_rounds)),
          rank_starts_array(core),
          state.clock,
          state.calibration};
}

FloatArray center_coordinates(const PackingCore& core) {
  return coordinates_array(
      core, inspect(core, [](const PackingCenters& centers, auto...) { return centers.points.points(); }));
}

template <auto member>
auto copy_of(const PackingCore& core) {
  return to_numpy(inspect(core, [](const PackingCenters& centers, auto...) { return centers.*member; }));
}

std::shared_ptr<PackingCore> copy_packing(const PackingCore& core) {
  const nb::gil_scoped_release release;
  return std::make_shared<PackingCore>(core);
}

void bind_packing_core(nb::module_& m) {
  const auto without_gil = nb::call_guard<nb::gil_scoped_release>();
  nb::class_<PackingCore> core(m, "PackingCore",
                               "Algorithm 1 in whitened coordinates. Threads may predict while one learns.");
  bind_calibration(core);
  core.def(
          "__init__",
          [](PackingCore* self, std::size_t dimension, const IntVector& rank_starts) {
            new (self) PackingCore(dimension, vector_of(rank_starts));
          },
          nb::arg("dimension"), nb::arg("rank_starts"))
      .def("__init__", &restore_packing, nb::arg("coordinates"), nb::arg("label_sums"), nb::arg("label_counts"),
           nb::arg("creation_rounds"), nb::arg("rank_starts"), nb::arg("clock"),
           nb::arg("calibration") = DeferredCalibration())
      .def("learn", &learn_rows<PackingCore, bool>, nb::arg("coordinates"), nb::arg("labels"),
           nb::arg("keep_founding_label"), nb::arg("bounds").noconvert() = nb::none(),
           nb::arg("positions") = nb::none(),
           "Run one round per row. Return the predictions, each made before its label was learned, and fill `bounds` "
           "with their intervals at `positions` among the coverages.")
      .def("predict", &predict_rows<PackingCore>, nb::arg("coordinates"), nb::arg("bounds").noconvert() = nb::none(),
           nb::arg("positions") = nb::none(),
           "Return the prediction for each row, 1/2 before the first round, and fill `bounds` with their intervals at "
           "`positions` among the coverages.")
      .def("copy", &copy_packing, "Return an independent copy.")
      .def(
          "__deepcopy__", [](const PackingCore& core, const nb::handle&) { return copy_packing(core); },
          nb::arg("memo"))
      .def(
          "to_arrays", &packing_arrays,
          "Return the arguments of an equal core: coordinates, label_sums, label_counts, creation_rounds, rank_starts, "
          "clock and calibration.")
      .def(
          "__reduce__",
          [](const PackingCore& core) { return nb::make_tuple(nb::type<PackingCore>(), packing_arrays(core)); },
          reduce_signature())
      .def_prop_ro("coordinates", &center_coordinates, new_array, "Whitened coordinates of the centers, one per row.")
      .def_prop_ro("label_sums", &copy_of<&PackingCenters::label_sums>, new_array, "Sum of the labels of each center.")
      .def_prop_ro("label_counts", &copy_of<&PackingCenters::label_counts>, new_array,
                   "Number of labels of each center.")
      .def_prop_ro("creation_rounds", &copy_of<&PackingCenters::creation_rounds>, new_array,
                   "Round in which each center was added.")
      .def_prop_ro("rank_starts", &rank_starts_array, new_array, "Rounds in which the effective rank increases.")
      .def_prop_ro("dimension", &PackingCore::dimension)
      .def_prop_ro("size", &PackingCore::size, without_gil, "Number of centers.")
      .def_prop_ro("clock", &PackingCore::clock, without_gil, "Number of rounds.");
}

// ---- UnitBox

FloatArray rows_to_units(const UnitBox& box, const Matrix& rows) {
  require_width(rows, box.dimension());
  const std::size_t d = box.dimension();
  std::vector<double> out(rows.size());
  for (std::size_t first = 0; first < rows.size(); first += d) {
    box.row_to_units(span_of(rows).subspan(first, d), std::span(out).subspan(first, d));
  }
  return to_numpy(std::move(out), {rows.shape(0), d});
}

std::size_t first_outside(const UnitBox& box, const Matrix& rows, const Vector& labels, std::size_t start) {
  require_width(rows, box.dimension());
  require_size("labels", labels.size(), rows.shape(0));
  const std::size_t d = box.dimension();
  std::size_t row = start;
  while (row < labels.size() && box.contains(span_of(rows).subspan(row * d, d), span_of(labels)[row])) {
    ++row;
  }
  return row;
}

FloatArray convert_labels(const UnitBox& box, const Vector& labels, double (UnitBox::*convert)(double) const) {
  std::vector<double> out(labels.size());
  std::ranges::transform(span_of(labels), out.begin(), [&](double label) { return (box.*convert)(label); });
  return to_numpy(std::move(out));
}

void bounds_from_units(const UnitBox& box, const Vector& predictions, const MutableMatrix& bounds) {
  require_size("bounds", bounds.shape(0), predictions.size());
  for (std::size_t row = 0; row < predictions.size(); ++row) {
    for (double& end : span_of(bounds).subspan(row * bounds.shape(1), bounds.shape(1))) {
      end = box.end_from_units(end, predictions(row));
    }
  }
}

FloatArray label_range(const UnitBox& box) { return to_numpy(std::vector{box.label().low, box.label().high}); }

FloatArray low_ends(const UnitBox& box) { return copy_to_numpy(box.low(), {box.dimension()}); }

FloatArray high_ends(const UnitBox& box) { return copy_to_numpy(box.high(), {box.dimension()}); }

void bind_unit_box(nb::module_& m) {
  nb::class_<UnitBox>(m, "UnitBox", "Ranges of the features and of the label. An empty range has low > high.")
      .def(
          "__init__",
          [](UnitBox* self, const Vector& low, const Vector& high, const Vector& label) {
            require_size("label", label.size(), 2);
            new (self) UnitBox(vector_of(low), vector_of(high), Range{label.data()[0], label.data()[1]});
          },
          nb::arg("low"), nb::arg("high"), nb::arg("label"))
      .def("first_outside", &first_outside, nb::arg("rows"), nb::arg("labels"), nb::arg("start"),
           "Return the first row from `start` on that is outside of the box or has a label outside, or the number of "
           "rows.")
      .def("rows_to_units", &rows_to_units, nb::arg("rows"),
           "Return rows scaled into the unit ball. Rows outside of the box are clipped to its edge.")
      .def(
          "labels_to_units",
          [](const UnitBox& box, const Vector& labels) {
            return convert_labels(box, labels, &UnitBox::label_to_units);
          },
          nb::arg("labels"), "Return labels scaled to [0, 1].")
      .def(
          "labels_from_units",
          [](const UnitBox& box, const Vector& labels) {
            return convert_labels(box, labels, &UnitBox::label_from_units);
          },
          nb::arg("labels"), "Return labels in their own units, given scaled labels; 0 before the first label.")
      .def("bounds_from_units", &bounds_from_units, nb::arg("predictions"), nb::arg("bounds").noconvert(),
           "Convert the intervals of scaled predictions to units of the label, in place.")
      .def(
          "__reduce__",
          [](const UnitBox& box) {
            return nb::make_tuple(nb::type<UnitBox>(), nb::make_tuple(low_ends(box), high_ends(box), label_range(box)));
          },
          reduce_signature())
      .def_prop_ro("low", &low_ends, new_array)
      .def_prop_ro("high", &high_ends, new_array)
      .def_prop_ro("label", &label_range, new_array, "Lower and upper end of the range of labels.");
}

// ---- RescaledPacking

void require_row(std::span<const double> row, std::size_t dimension) {
  require_size("row", row.size(), dimension);
  require(all_finite(row), "row must be finite");
}

void bind_rescaled_packing(nb::module_& m) {
  nb::class_<RescaledPacking>(m, "RescaledPacking", "Algorithm 1 on single rows, scaled by a box.")
      .def(
          "__init__",
          [](RescaledPacking* self, std::shared_ptr<PackingCore> core, const UnitBox& box, const Matrix& directions) {
            new (self) RescaledPacking(std::move(core), box, vector_of(directions));
          },
          nb::arg("core"), nb::arg("box"), nb::arg("directions"))
      .def(
          "predict",
          [](const RescaledPacking& packing, const std::vector<double>& row) {
            require_row(row, packing.dimension());
            const nb::gil_scoped_release release;
            return packing.predict(row);
          },
          nb::arg("row"), "Return the prediction for a row. A row outside of the box is clipped to its edge.")
      .def(
          "learn",
          [](RescaledPacking& packing, const std::vector<double>& row, double label, bool keep_founding_label) {
            require_row(row, packing.dimension());
            const nb::gil_scoped_release release;
            return packing.learn(row, label, keep_founding_label);
          },
          nb::arg("row"), nb::arg("label"), nb::arg("keep_founding_label"),
          "Run a round. Return False, without a change, if the row or its label is outside of the box.");
}

}  // namespace

void bind_packing(nb::module_& m) {
  bind_packing_core(m);
  bind_unit_box(m);
  bind_rescaled_packing(m);
}

}  // namespace ellipack
