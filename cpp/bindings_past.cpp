// Python bindings of the state that sees the past, and of the complete state of a core.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings.hpp"
#include "metric_core.hpp"

namespace ellipack {

namespace {

using namespace nb::literals;

// In Python, a history is a row: count, mean, error, last labels.
constexpr std::size_t history_size = 3 + LabelHistory::max_labels;

LabelHistory make_history(const double* row) {
  require(row[0] >= 0.0 && row[0] <= static_cast<double>(largest_count),
          "the count of a history must be from 0 to 2^52");
  LabelHistory history{static_cast<std::int64_t>(row[0]), row[1], row[2], {}};
  std::copy_n(row + 3, LabelHistory::max_labels, history.labels.begin());
  return history;
}

void append_history(const LabelHistory& history, std::vector<double>& rows) {
  rows.insert(rows.end(), {static_cast<double>(history.count), history.mean, history.error});
  rows.insert(rows.end(), history.labels.begin(), history.labels.end());
}

PastFeatures make_past_features(std::size_t labels, std::size_t max_keys, const Vector& stream, const IntVector& keys,
                                const Matrix& histories) {
  require_size("stream", stream.size(), history_size);
  require_size("histories", histories.shape(0), keys.size());
  require_size("a row of histories", histories.shape(1), history_size);
  std::vector<std::pair<std::int64_t, LabelHistory>> by_key;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    by_key.emplace_back(keys(k), make_history(histories.data() + k * history_size));
  }
  PastFeatures made(PastSettings{labels, max_keys});
  made.restore(make_history(stream.data()), by_key);
  return made;
}

FloatArray stream_of(const PastFeatures& features) {
  std::vector<double> row;
  append_history(features.stream(), row);
  return to_numpy(std::move(row));
}

IntArray keys_of(const PastFeatures& features) {
  std::vector<std::int64_t> keys;
  for (const auto& entry : features.keys()) {
    keys.push_back(entry.first);
  }
  return to_numpy(std::move(keys));
}

FloatArray histories_of(const PastFeatures& features) {
  std::vector<double> rows;
  for (const auto& entry : features.keys()) {
    append_history(entry.second, rows);
  }
  const std::size_t count = rows.size() / history_size;
  return to_numpy(std::move(rows), {count, history_size});
}

void bind_past_features(nb::module_& m) {
  nb::class_<PastFeatures>(m, "PastFeatures", "Features that summarize earlier labels.")
      .def(nb::new_(&make_past_features), "labels"_a, "max_keys"_a, "stream"_a, "keys"_a, "histories"_a)
      .def_prop_ro_static(
          "history_size", [](nb::handle) { return history_size; }, "Number of values of a history.")
      .def_ro_static("max_labels", &LabelHistory::max_labels, "Largest number of last labels.")
      .def_ro_static("largest_value", &MetricCore::largest_past, "Largest feature in size.")
      .def_prop_ro("labels", [](const PastFeatures& self) { return self.settings().labels; })
      .def_prop_ro("max_keys", [](const PastFeatures& self) { return self.settings().max_keys; })
      .def_prop_ro("dimension", &PastFeatures::dimension, "Number of features.")
      .def_prop_ro("stream", &stream_of, new_array, "History of the stream: count, mean, error, labels.")
      .def_prop_ro("keys", &keys_of, new_array, "Keys, in the order in which they were learned last.")
      .def_prop_ro("histories", &histories_of, new_array, "History of each key.")
      .def("add", &PastFeatures::add, "key"_a, "label"_a, "prediction"_a, "Learn the label of a row.")
      .def(
          "__reduce__",
          [](const PastFeatures& self) {
            return nb::make_tuple(nb::type<PastFeatures>(),
                                  nb::make_tuple(self.settings().labels, self.settings().max_keys, stream_of(self),
                                                 keys_of(self), histories_of(self)));
          },
          reduce_signature());
}

// In Python, errors are a tuple: number of rounds, sums without and with the past.
using Sums = std::tuple<std::int64_t, double, double>;

Sums sums_of(const SquaredErrors& errors) { return {errors.rounds, errors.without_past, errors.with_past}; }

SquaredErrors make_errors(const Sums& sums) { return {std::get<0>(sums), std::get<1>(sums), std::get<2>(sums)}; }

// Copies what a pointer points to. An optional argument would be copied by nanobind, which ends the process if memory
// runs out there.
template <typename T>
std::optional<T> copy_if_any(const T* value) {
  return value == nullptr ? std::nullopt : std::optional<T>(*value);
}

void bind_past_parts(nb::module_& m) {
  nb::class_<PastParts>(m, "PastParts", "State of the learner that sees the past.")
      .def(nb::new_([](MetricParts rounds, const PastFeatures& features, StackedAggregation combination,
                       std::int64_t active_from, const Sums& active_errors, const Sums& total_errors) {
             return PastParts{std::move(rounds),          features,
                              std::move(combination),     active_from,
                              make_errors(active_errors), make_errors(total_errors)};
           }),
           "rounds"_a, "features"_a, "combination"_a, "active_from"_a, "active_errors"_a, "total_errors"_a)
      .def_ro("rounds", &PastParts::rounds)
      .def_ro("features", &PastParts::features)
      .def_ro("combination", &PastParts::combination)
      .def_ro("active_from", &PastParts::active_from)
      .def_prop_ro(
          "active_errors", [](const PastParts& self) { return sums_of(self.active_errors); },
          "Rounds of this phase that used the past, and sums of squared errors without and with it.")
      .def_prop_ro(
          "total_errors", [](const PastParts& self) { return sums_of(self.total_errors); }, "The same for all rounds.")
      .def(
          "__reduce__",
          [](const PastParts& self) {
            return nb::make_tuple(nb::type<PastParts>(),
                                  nb::make_tuple(self.rounds, self.features, self.combination, self.active_from,
                                                 sums_of(self.active_errors), sums_of(self.total_errors)));
          },
          reduce_signature());
  nb::class_<CoreParts>(m, "CoreParts", "Complete state of a MetricCore.")
      .def(nb::new_([](MetricParts plain, const PastParts* past, const ImportanceParts* importance) {
             CoreParts parts{std::move(plain), copy_if_any(past), copy_if_any(importance)};
             parts.check();
             return parts;
           }),
           "plain"_a, "past"_a.none(), "importance"_a.none() = nb::none())
      .def_ro("plain", &CoreParts::plain)
      .def_ro("past", &CoreParts::past)
      .def_ro("importance", &CoreParts::importance)
      .def(
          "__reduce__",
          [](const CoreParts& self) {
            return nb::make_tuple(nb::type<CoreParts>(), nb::make_tuple(self.plain, self.past, self.importance));
          },
          reduce_signature());
}

}  // namespace

void bind_past(nb::module_& m) {
  bind_past_features(m);
  bind_past_parts(m);
}

}  // namespace ellipack
