// Python bindings of the compiled core of MetricRegressor, and of leave-one-out scores.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <optional>
#include <tuple>

#include "bindings.hpp"
#include "loo_scoring.hpp"
#include "metric_core.hpp"

namespace ellipack {

namespace {

using namespace nb::literals;

using AnyArray = nb::ndarray<nb::ro>;

// Returns the entries of an aligned array of doubles in C order with the given number of dimensions, or nullopt for any
// other array.
std::optional<std::span<const double>> doubles_of(const AnyArray& array, std::size_t dimensions) {
  if (array.ndim() != dimensions || array.dtype() != nb::dtype<double>() ||
      array.device_type() != nb::device::cpu::value ||
      reinterpret_cast<std::uintptr_t>(array.data()) % alignof(double) != 0) {
    return std::nullopt;
  }
  std::int64_t stride = 1;
  for (std::size_t k = dimensions; k-- > 0;) {
    if (array.shape(k) != 1 && array.stride(k) != stride) {
      return std::nullopt;
    }
    stride *= static_cast<std::int64_t>(array.shape(k));
  }
  return std::span(static_cast<const double*>(array.data()), array.size());
}

bool accepts_rows(const MetricCore& core, const AnyArray& rows) {
  const auto entries = doubles_of(rows, 2);
  return entries && !entries->empty() && rows.shape(1) == core.dimension() && MetricCore::accepts_rows(*entries);
}

bool accepts_rounds(const MetricCore& core, const AnyArray& rows, const AnyArray& labels) {
  const auto entries = doubles_of(labels, 1);
  return entries && accepts_rows(core, rows) && entries->size() == rows.shape(0) &&
         MetricCore::accepts_labels(*entries);
}

// Where the core writes predictions and, unless `bounds` is empty, the intervals of all coverages.
PredictionOutput output_to(const MutableVector& predictions, const MutableMatrix& bounds) {
  PredictionOutput output{span_of(predictions), span_of(bounds), {}};
  if (!output.bounds.empty()) {
    output.positions = ConformalIntervals::all_positions;
  }
  return output;
}

double predict_one(const MetricCore& core, const std::vector<double>& row) {
  double prediction = 0.0;
  core.predict(row, {{&prediction, 1}, {}, {}});
  return prediction;
}

std::tuple<double, std::vector<double>> predict_next_one(const MetricCore& core, const std::vector<double>& row,
                                                         std::int64_t key) {
  MetricCore::NextPrediction next = core.predict_next_row(row, key);
  return {next.published.prediction, std::move(next.past)};
}

std::tuple<double, std::vector<double>, std::vector<double>> predict_next_interval_one(const MetricCore& core,
                                                                                       const std::vector<double>& row,
                                                                                       std::int64_t key) {
  MetricCore::NextPrediction next = core.predict_next_row(row, key);
  const ConformalIntervals::Bounds& bounds = next.published.bounds;
  return {next.published.prediction, std::move(next.past), {bounds.begin(), bounds.end()}};
}

bool learn_one(MetricCore& core, const std::vector<double>& row, double label, std::int64_t key,
               const std::vector<double>& past, const std::vector<double>& bounds) {
  return core.learn_row({row, key, past, bounds}, label);
}

using RoundResult = std::tuple<CoreParts, double, std::vector<double>>;

RoundResult to_result(std::pair<CoreParts, MetricRounds::Published> after) {
  const auto& [prediction, scale, bounds] = after.second;
  return {std::move(after.first), prediction, {bounds.begin(), bounds.end()}};
}

RoundResult round_on_copy(const MetricCore& core, const std::vector<double>& row, double label, std::int64_t key,
                          const std::vector<double>& past, const std::vector<double>& bounds) {
  return to_result(core.round_on_copy({row, key, past, bounds}, label));
}

RoundResult round_before_refit(const MetricCore& core, const std::vector<double>& row, double label, std::int64_t key,
                               const std::vector<double>& past, const std::vector<double>& bounds) {
  return to_result(core.round_before_refit({row, key, past, bounds}, label));
}

FloatArray expert_weights(const MetricCore& core) {
  std::vector<double> weights;
  {
    const nb::gil_scoped_release release;
    weights = core.expert_weights();
  }
  return to_numpy(std::move(weights));
}

std::tuple<FloatArray, std::tuple<double, double>> expert_predictions(const MetricCore& core,
                                                                      const std::vector<double>& row) {
  MetricCore::ExpertPredictions predicted;
  {
    const nb::gil_scoped_release release;
    predicted = core.expert_predictions(row);
  }
  return {to_numpy(std::move(predicted.experts)), {predicted.mean_and_stacked[0], predicted.mean_and_stacked[1]}};
}

CoreParts parts_of(const MetricCore& core) {
  const nb::gil_scoped_release release;
  return core.parts();
}

void bind_core(nb::module_& m) {
  nb::class_<MetricSettings>(m, "MetricSettings", "Settings of a MetricCore.")
      .def(nb::new_([](std::size_t neighbors, std::size_t max_centers, double label_margin) {
             return MetricSettings{neighbors, max_centers, label_margin};
           }),
           "neighbors"_a, "max_centers"_a, "label_margin"_a)
      .def_ro("neighbors", &MetricSettings::neighbors)
      .def_ro("max_centers", &MetricSettings::max_centers)
      .def_prop_ro("past_max_centers", &MetricSettings::past_max_centers,
                   "Number of centers at which the learner that sees the past evicts some.")
      .def_ro("label_margin", &MetricSettings::label_margin)
      .def(
          "__reduce__",
          [](const MetricSettings& self) {
            return nb::make_tuple(nb::type<MetricSettings>(),
                                  nb::make_tuple(self.neighbors, self.max_centers, self.label_margin));
          },
          reduce_signature());
  using release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<MetricCore>(m, "MetricCore", "Rounds of MetricRegressor within a phase.")
      .def(nb::init<const MetricSettings&, CoreParts>(), "settings"_a, "parts"_a, release())
      .def_prop_ro("settings", &MetricCore::settings)
      .def_prop_ro("dimension", &MetricCore::dimension)
      .def_prop_ro("has_past", &MetricCore::has_past, "Whether the core sees the past.")
      .def_prop_ro("past_labels", &MetricCore::past_labels, "Number of last labels that the core sees.")
      .def_prop_ro("has_keys", &MetricCore::has_keys, "Whether rows have keys.")
      .def_prop_ro("clock", &MetricCore::clock, release(), "Number of rounds.")
      .def("__len__", &MetricCore::size, release())
      .def("expert_weights", &expert_weights, "Return the weight of each expert in the aggregation; they add up to 1.")
      .def(
          "feature_scales",
          [](const MetricCore& core) { return copy_to_numpy(core.feature_scales(), {core.dimension()}); },
          "Return the scale of each feature in the first view.")
      .def(
          "past_feature_scales",
          [](const MetricCore& core) {
            const std::span<const double> scales = core.past_feature_scales();
            return copy_to_numpy(scales, {scales.size()});
          },
          "Return the same for the learner that sees the past.")
      .def(
          "past_errors",
          [](const MetricCore& core) {
            const SquaredErrors errors = core.past_errors();
            return std::tuple(errors.rounds, errors.without_past, errors.with_past);
          },
          release(), "Return the number of rounds, and the sums of squared errors without and with the past.")
      .def("parts", &MetricCore::parts, release(), "Return a copy of all parts.")
      .def("accepts_rows", &accepts_rows, "rows"_a,
           nb::sig("def accepts_rows(self, rows: NDArray[numpy.generic]) -> bool"),
           "Return whether an array contains valid rows that need no conversion: finite doubles in C order, not too "
           "large.")
      .def("accepts_rounds", &accepts_rounds, "rows"_a, "labels"_a,
           nb::sig("def accepts_rounds(self, rows: NDArray[numpy.generic], labels: NDArray[numpy.generic]) -> bool"),
           "Return whether arrays contain valid rows and as many valid labels, and need no conversion.")
      .def(
          "predict",
          [](const MetricCore& core, const Matrix& rows, const MutableVector& predictions, const MutableMatrix& bounds,
             std::size_t threads) {
            require_size("a row", rows.shape(1), core.dimension());
            core.predict(span_of(rows), output_to(predictions, bounds), threads);
          },
          "rows"_a, "predictions"_a.noconvert(), "bounds"_a.noconvert(), "threads"_a = 1, release(),
          "Fill in the prediction for each row and, unless `bounds` is empty, its intervals, all from the same state.")
      .def("past_features", &MetricCore::past_features, release(), "Return a copy of the past.")
      .def(
          "predict_next",
          [](const MetricCore& core, const Matrix& rows, const IntVector& keys, const Vector& labels,
             PastFeatures* features, const MutableVector& predictions, const MutableMatrix& bounds,
             bool follows_unknown) {
            require_size("a row", rows.shape(1), core.dimension());
            core.predict_next(span_of(rows), span_of(keys), span_of(labels), features, output_to(predictions, bounds),
                              follows_unknown);
          },
          "rows"_a, "keys"_a, "labels"_a, "features"_a.none(), "predictions"_a.noconvert(), "bounds"_a.noconvert(),
          "follows_unknown"_a, release(),
          "Fill in the prediction for each of the rows that follow, one after the other, and unless `bounds` is empty, "
          "its intervals. `features` holds the past before them, and is updated; None stands for a copy of that of the "
          "core. A label that is NaN is unknown, and the prediction stands in for it. `follows_unknown` tells whether "
          "the label before the first row is unknown.")
      .def(
          "learn",
          [](MetricCore& core, const Matrix& rows, const IntVector& keys, const Vector& labels,
             const MutableVector& predictions, const MutableMatrix& bounds,
             const std::optional<MutableVector>& plain_predictions, const std::optional<MutableMatrix>& plain_bounds,
             std::size_t first, std::optional<std::size_t> count, std::int64_t phase_end) {
            require_size("a row", rows.shape(1), core.dimension());
            const bool has_plain = plain_predictions && plain_bounds;
            return core.learn(
                {span_of(rows), span_of(keys), span_of(labels), first, count.value_or(labels.size() - first)},
                phase_end, output_to(predictions, bounds),
                has_plain ? output_to(*plain_predictions, *plain_bounds) : PredictionOutput{});
          },
          "rows"_a, "keys"_a, "labels"_a, "predictions"_a.noconvert(), "bounds"_a.noconvert(),
          "plain_predictions"_a.noconvert() = nb::none(), "plain_bounds"_a.noconvert() = nb::none(), "first"_a = 0,
          "count"_a = nb::none(), "phase_end"_a = std::numeric_limits<std::int64_t>::max(), release(),
          "Run one round for each of `count` rows from `first` on, by default for all. Fill in the predictions and, "
          "unless `bounds` is empty, their intervals. Fill in the predictions from the features alone, too, unless "
          "`plain_predictions` is None. Stop before the round `phase_end`, and before a round that would fill the "
          "memory. Return the number of rounds run.")
      .def("expert_predictions", &expert_predictions, "row"_a,
           "Return the predictions of all experts for a row from the features alone, and those of the aggregation and "
           "the "
           "stack.")
      .def("predict_one", &predict_one, "row"_a, release(), "Return the prediction for a row from the features alone.")
      .def("predict_next_one", &predict_next_one, "row"_a, "key"_a = 0, release(),
           "Return the prediction of the row that follows, and the features of the past that it used.")
      .def("predict_next_interval_one", &predict_next_interval_one, "row"_a, "key"_a = 0, release(),
           "Return the same, and the intervals of the prediction.")
      .def("learn_one", &learn_one, "row"_a, "label"_a, "key"_a = 0, "past"_a = std::vector<double>(),
           "bounds"_a = std::vector<double>(), release(),
           "Run a round. Return False, without a change, if the round would fill the memory. If the label comes late, "
           "`past` has the features of the past at the time of the prediction, and `bounds` its intervals.")
      .def("round_on_copy", &round_on_copy, "row"_a, "label"_a, "key"_a = 0, "past"_a = std::vector<double>(),
           "bounds"_a = std::vector<double>(), release(),
           "Return the parts after one more round, its prediction and its intervals, without changing the core.")
      .def("round_before_refit", &round_before_refit, "row"_a, "label"_a, "key"_a = 0, "past"_a = std::vector<double>(),
           "bounds"_a = std::vector<double>(), release(),
           "Do the same as `round_on_copy`, but return empty global regressions, which must be fitted again. With many "
           "features, it is faster.")
      .def(
          "copy", [](const MetricCore& self) { return new MetricCore(self); }, nb::rv_policy::take_ownership, release(),
          "Return an independent copy.")
      .def(
          "__reduce__",
          [](const MetricCore& self) {
            return nb::make_tuple(nb::type<MetricCore>(), nb::make_tuple(self.settings(), parts_of(self)));
          },
          reduce_signature());
}

void bind_scoring(nb::module_& m) {
  nb::class_<LeaveOneOutScorer>(m, "LeaveOneOutScorer", "Leave-one-out scores of candidate metrics.")
      .def(nb::new_([](const Vector& labels, const IntVector& validation, std::size_t neighbors) {
             return LeaveOneOutScorer(vector_of(labels), vector_of(validation), neighbors);
           }),
           "labels"_a, "validation"_a, "neighbors"_a)
      .def(
          "score",
          [](LeaveOneOutScorer& self, const Matrix& projected, const Vector& scales) {
            require_size("a row of projected", projected.shape(1), scales.size());
            return self.score(span_of(projected), span_of(scales));
          },
          "projected"_a, "scales"_a, nb::call_guard<nb::gil_scoped_release>(),
          "Return the sum of squared errors for the coordinates `projected * scales`.");
}

}  // namespace

void bind_metric_core(nb::module_& m) {
  bind_core(m);
  bind_scoring(m);
}

}  // namespace ellipack
