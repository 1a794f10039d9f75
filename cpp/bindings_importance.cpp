// Python bindings of the importance of columns.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <array>

#include "bindings.hpp"
#include "column_importance.hpp"

namespace ellipack {

namespace {

using namespace nb::literals;

// In Python, the sums of a group are two rows, over all rounds and over the recent ones: weight, squared weight, mean
// rise and control, their squares and products, and the weight and mean of the controls at all rounds.
constexpr std::size_t sum_count = 9;

GroupSums make_sums(const double* row) {
  return {{row[0], row[1], row[2], row[3], row[4], row[5], row[6]}, {row[7], row[8]}};
}

std::array<double, sum_count> sums_of(const GroupSums& sums) {
  const RiseMoments& m = sums.moments;
  return {m.weight,          m.squared_weight,     m.rise,
          m.control,         m.rise_squares,       m.products,
          m.control_squares, sums.controls.weight, sums.controls.mean};
}

FeatureGroup make_group(const IntVector& features, bool uses_past, double priority, std::int64_t count, double credit,
                        const Matrix& sums) {
  require_size("sums", sums.size(), 2 * sum_count);
  return {vector_of(features),
          uses_past,
          priority,
          count,
          credit,
          make_sums(sums.data()),
          make_sums(sums.data() + sum_count)};
}

FloatArray group_sums(const FeatureGroup& group) {
  std::vector<double> rows;
  for (const GroupSums& each : {group.total, group.recent}) {
    const auto row = sums_of(each);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return to_numpy(std::move(rows), {2, sum_count});
}

void bind_group(nb::module_& m) {
  nb::class_<FeatureGroup>(m, "FeatureGroup", "Features that are replaced together, and what was measured.")
      .def(nb::new_(&make_group), "features"_a, "uses_past"_a, "priority"_a, "count"_a, "credit"_a, "sums"_a)
      .def_prop_ro_static(
          "sum_count", [](nb::handle) { return sum_count; }, "Number of sums over all rounds.")
      .def_prop_ro(
          "features", [](const FeatureGroup& self) { return as_ints(self.features); }, new_array)
      .def_ro("uses_past", &FeatureGroup::uses_past)
      .def_ro("priority", &FeatureGroup::priority)
      .def_ro("count", &FeatureGroup::count)
      .def_ro("credit", &FeatureGroup::credit)
      .def_prop_ro("sums", &group_sums, new_array, "Sums over all rounds and over the recent ones.")
      .def(
          "__reduce__",
          [](const FeatureGroup& self) {
            return nb::make_tuple(nb::type<FeatureGroup>(),
                                  nb::make_tuple(as_ints(self.features), self.uses_past, self.priority, self.count,
                                                 self.credit, group_sums(self)));
          },
          reduce_signature());
}

// In Python, errors are four numbers: weight and mean over all rounds, and over the recent ones.
FloatArray errors_of(const ImportanceParts& parts) {
  return to_numpy(std::vector<double>{parts.total_error.weight, parts.total_error.mean, parts.recent_error.weight,
                                      parts.recent_error.mean});
}

ImportanceParts make_parts(std::int64_t seed, std::vector<FeatureGroup> groups, std::int64_t seen, const Matrix& rows,
                           const Matrix& past_rows, const Vector& errors, const Vector& last_row,
                           const std::pair<IntVector, IntVector>& moves) {
  require_size("errors", errors.size(), 4);
  require_size("past_rows", past_rows.shape(0), rows.shape(0));
  ImportanceParts parts{seed,
                        rows.shape(1),
                        past_rows.shape(1),
                        std::move(groups),
                        seen,
                        vector_of(rows),
                        vector_of(past_rows),
                        {errors(0), errors(1)},
                        {errors(2), errors(3)},
                        vector_of(last_row),
                        vector_of(moves.first),
                        vector_of(moves.second)};
  parts.check();
  return parts;
}

FloatArray rows_of(const ImportanceParts& self) {
  return copy_to_numpy<double>(self.rows, {self.row_count(), self.dimension});
}

FloatArray past_rows_of(const ImportanceParts& self) {
  return copy_to_numpy<double>(self.past_rows, {self.row_count(), self.past_dimension});
}

std::pair<IntArray, IntArray> moves_of(const ImportanceParts& self) {
  return {as_ints(self.increases), as_ints(self.decreases)};
}

void bind_parts(nb::module_& m) {
  nb::class_<ImportanceParts>(m, "ImportanceParts", "What was measured about the importance of columns.")
      .def(nb::new_(&make_parts), "seed"_a, "groups"_a, "seen"_a, "rows"_a, "past_rows"_a, "errors"_a, "last_row"_a,
           "moves"_a)
      .def_prop_ro_static(
          "max_rows", [](nb::handle) { return ImportanceParts::max_rows; }, "Largest number of rows of the sample.")
      .def_ro("seed", &ImportanceParts::seed)
      .def_ro("groups", &ImportanceParts::groups)
      .def_ro("seen", &ImportanceParts::seen)
      .def_prop_ro("rows", &rows_of, new_array, "Sample of earlier rows.")
      .def_prop_ro("past_rows", &past_rows_of, new_array, "Their features of the past.")
      .def_prop_ro("errors", &errors_of, new_array,
                   "Weight and mean of the squared errors of all rounds, and of the recent ones.")
      .def_prop_ro(
          "last_row", [](const ImportanceParts& self) { return as_vector(self.last_row); }, new_array)
      .def_prop_ro("moves", &moves_of, new_array, "Numbers of increases and decreases of each feature.")
      .def(
          "__reduce__",
          [](const ImportanceParts& self) {
            return nb::make_tuple(nb::type<ImportanceParts>(),
                                  nb::make_tuple(self.seed, self.groups, self.seen, rows_of(self), past_rows_of(self),
                                                 errors_of(self), as_vector(self.last_row), moves_of(self)));
          },
          reduce_signature());
}

}  // namespace

void bind_importance(nb::module_& m) {
  bind_group(m);
  bind_parts(m);
}

}  // namespace ellipack
