// Python bindings of prediction intervals.

#include <vector>

#include "bindings.hpp"
#include "bindings_rounds.hpp"
#include "conformal.hpp"
#include "deferred_calibration.hpp"

namespace ellipack {

namespace {

using namespace nb::literals;
using Bounds = ConformalIntervals::Bounds;

constexpr std::size_t bounds_per_row = std::tuple_size_v<Bounds>;

ConformalIntervals make_intervals(double mean_error, std::int64_t labels, std::int64_t rounds, const Vector& widths,
                                  const Vector& scale_losses, double excess_misses) {
  ConformalIntervals made{.mean_error = mean_error, .labels = labels, .rounds = rounds, .excess_misses = excess_misses};
  require_size("widths", widths.size(), made.widths.size());
  require_size("scale_losses", scale_losses.size(), made.scale_losses.size());
  std::ranges::copy(span_of(widths), made.widths.begin());
  std::ranges::copy(span_of(scale_losses), made.scale_losses.begin());
  made.check();
  return made;
}

FloatArray widths_of(const ConformalIntervals& self) { return copy_to_numpy<double>(self.widths, {bounds_per_row}); }

FloatArray scale_losses_of(const ConformalIntervals& self) {
  return copy_to_numpy<double>(self.scale_losses, {self.scale_losses.size()});
}

void learn_error(ConformalIntervals& self, double error, double relative_scale) {
  require(relative_scale > 0.0, "relative_scale must be > 0");
  self.learn_error(error, relative_scale);
}

FloatArray around(const ConformalIntervals& self, const Vector& predictions, double relative_scale) {
  std::vector<double> out;
  out.reserve(predictions.size() * bounds_per_row);
  for (const double prediction : span_of(predictions)) {
    const Bounds bounds = self.around(prediction, relative_scale);
    out.insert(out.end(), bounds.begin(), bounds.end());
  }
  return to_numpy(std::move(out), {predictions.size(), bounds_per_row});
}

Bounds bounds_of(const Vector& published) {
  require_size("published", published.size(), bounds_per_row);
  Bounds bounds;
  std::ranges::copy(span_of(published), bounds.begin());
  return bounds;
}

void learn_label(ConformalIntervals& self, double label, const Vector& published) {
  self.learn_label(label, bounds_of(published));
}

FloatArray select(const Matrix& bounds, const Vector& positions) {
  require_width(bounds, bounds_per_row);
  const auto wanted = positions_of(positions);
  std::vector<double> unused(bounds.shape(0));
  std::vector<double> out(2 * bounds.shape(0) * wanted.size());
  const PredictionOutput output{unused, out, wanted};
  for (std::size_t row = 0; row < bounds.shape(0); ++row) {
    Bounds all;
    std::ranges::copy(span_of(bounds).subspan(row * bounds_per_row, bounds_per_row), all.begin());
    output.write_bounds(row, all);
  }
  return to_numpy(std::move(out), {bounds.shape(0), 2 * wanted.size()});
}

// Functions for tests.

void learn_misses(ConformalIntervals& self, double label, const Vector& published) {
  self.learn_misses(label, bounds_of(published));
}

// Runs a round for each of the predictions and labels, and returns the intervals before each label.
template <typename Calibrated>
FloatArray learn_rounds(Calibrated& self, const Vector& predictions, const Vector& labels) {
  require_size("labels", labels.size(), predictions.size());
  std::vector<double> out;
  out.reserve(predictions.size() * bounds_per_row);
  self.run_rounds(span_of(predictions), span_of(labels), [&](std::size_t row, auto calibrations) {
    for (const ConformalIntervals::Calibration& each : calibrations) {
      const Bounds bounds = each.around(predictions(row++));
      out.insert(out.end(), bounds.begin(), bounds.end());
    }
  });
  return to_numpy(std::move(out), {predictions.size(), bounds_per_row});
}

void defer_rounds(DeferredCalibration& self, const Vector& predictions, const Vector& labels) {
  require_size("labels", labels.size(), predictions.size());
  self.defer(span_of(predictions), span_of(labels));
}

void bind_deferred_calibration(nb::module_& m) {
  nb::class_<DeferredCalibration>(m, "DeferredCalibration",
                                  "Calibration of intervals that is put off until they are asked for.")
      .def(nb::new_([] { return DeferredCalibration{}; }))
      .def(nb::new_([](const ConformalIntervals& calibrated) { return DeferredCalibration(calibrated, {}); }),
           "calibrated"_a)
      .def(nb::new_([](const ConformalIntervals& calibrated, const Vector& errors) {
             return DeferredCalibration(calibrated, span_of(errors));
           }),
           "calibrated"_a, "errors"_a)
      .def_ro_static("most_errors", &DeferredCalibration::most_errors, "Largest number of errors.")
      .def_prop_ro("calibrated", &DeferredCalibration::calibrated, nb::rv_policy::copy,
                   "Calibration without the deferred rounds.")
      .def_prop_ro(
          "errors", [](const DeferredCalibration& self) { return to_numpy(self.errors()); }, new_array,
          "Errors of the deferred rounds, from the oldest to the newest.")
      .def_prop_ro("intervals", &DeferredCalibration::intervals, "Calibration after the deferred rounds.")
      .def("learn", &learn_rounds<DeferredCalibration>, "predictions"_a, "labels"_a,
           "Return the intervals around predictions, and learn their labels one after the other, all after the "
           "deferred rounds.")
      .def("defer", &defer_rounds, "predictions"_a, "labels"_a, "Defer one round for each prediction and its label.")
      .def("in_units", &DeferredCalibration::in_units, "slope"_a,
           "Return the calibration for labels that are multiplied by a slope.")
      .def(
          "__eq__",
          [](const DeferredCalibration& self, nb::handle other) {
            return nb::isinstance<DeferredCalibration>(other) && self == nb::cast<const DeferredCalibration&>(other);
          },
          "other"_a, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def(
          "__reduce__",
          [](const DeferredCalibration& self) {
            return nb::make_tuple(nb::type<DeferredCalibration>(),
                                  nb::make_tuple(self.calibrated(), to_numpy(self.errors())));
          },
          reduce_signature());
}

}  // namespace

void bind_conformal(nb::module_& m) {
  nb::class_<ConformalIntervals>(m, "ConformalIntervals", "Prediction intervals by adaptive conformal inference.")
      .def(nb::new_([] { return ConformalIntervals{}; }))
      .def(nb::new_(&make_intervals), "mean_error"_a, "labels"_a, "rounds"_a, "widths"_a, "scale_losses"_a,
           "excess_misses"_a)
      .def_prop_ro_static(
          "coverages",
          [](nb::handle) { return copy_to_numpy<double>(ConformalIntervals::coverages, {ConformalIntervals::size}); },
          "Coverages of the intervals, in ascending order.")
      .def_ro_static("smallest_width", &ConformalIntervals::smallest_width, "Smallest width, in units of the scale.")
      .def_ro_static("largest_width", &ConformalIntervals::largest_width, "Largest width.")
      .def_ro_static("largest_scale_loss", &ConformalIntervals::largest_scale_loss, "Largest loss in size.")
      .def_ro_static("largest_excess", &ConformalIntervals::largest_excess, "Largest `excess_misses` in size.")
      .def_ro("mean_error", &ConformalIntervals::mean_error)
      .def_ro("labels", &ConformalIntervals::labels)
      .def_ro("rounds", &ConformalIntervals::rounds)
      .def_prop_ro("widths", &widths_of, new_array,
                   "Widths of the lower sides, then of the upper ones, in units of the scale.")
      .def_prop_ro("scale_losses", &scale_losses_of, new_array,
                   "Losses of the powers 0, 1/2 and 1 of the relative scale in the last rounds.")
      .def_ro("excess_misses", &ConformalIntervals::excess_misses)
      .def_static("select", &select, "bounds"_a, "positions"_a,
                  "Return the intervals at positions among the coverages, from those of all coverages. The position "
                  "3.25 is a quarter of the way from the interval of index 3 to the next.")
      .def("around", &around, "predictions"_a, "relative_scale"_a = 1.0,
           "Return the intervals around predictions: lower ends, then upper ends.")
      .def("learn_label", &learn_label, "label"_a, "published"_a,
           "Move the widths by a label and the intervals that were published for it.")
      .def("learn_error", &learn_error, "error"_a, "relative_scale"_a,
           "Add the error of a prediction to the mean error and to the losses of relative scales.")
      .def("learn", &learn_rounds<ConformalIntervals>, "predictions"_a, "labels"_a,
           "Return the intervals around predictions, and learn their labels one after the other.")
      .def("learn_misses", &learn_misses, "label"_a, "published"_a,
           "Add how many of the published intervals a label missed, by which the scale is changed.")
      .def(
          "__eq__",
          [](const ConformalIntervals& self, nb::handle other) {
            return nb::isinstance<ConformalIntervals>(other) && self == nb::cast<const ConformalIntervals&>(other);
          },
          "other"_a, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def(
          "__reduce__",
          [](const ConformalIntervals& self) {
            return nb::make_tuple(nb::type<ConformalIntervals>(),
                                  nb::make_tuple(self.mean_error, self.labels, self.rounds, widths_of(self),
                                                 scale_losses_of(self), self.excess_misses));
          },
          reduce_signature());
  bind_deferred_calibration(m);
}

}  // namespace ellipack
