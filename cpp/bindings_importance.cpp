// Python bindings of the importance of columns.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bindings.hpp"
#include "center_columns.hpp"
#include "column_importance.hpp"
#include "slope_model.hpp"

namespace ellipack {

namespace {

using namespace nb::literals;

// In Python, the sums of a group are two rows, over all rounds and over the recent ones. A row has the moments of the
// controls and the rise where it was measured, the same with squared weights, those of the controls at all rounds, and
// the number of rounds and the fraction of those with different values. Moments are the weight, the squared weight, the
// means, and the products or squares.
constexpr std::size_t measured_count = sizeof(MeasuredMoments) / sizeof(double);
static_assert(measured_count == 2 + 5 + 15 && sizeof(ControlMoments) == (2 + 4 + 4) * sizeof(double));
constexpr std::size_t sum_count = (2 * sizeof(MeasuredMoments) + sizeof(ControlMoments)) / sizeof(double) + 2;

template <typename Moments>
Moments make_moments(const double* first) {
  Moments moments{first[0], first[1], {}, {}};
  auto& [weight, squared_weight, means, products] = moments;
  std::copy_n(first + 2, means.size(), means.begin());
  std::copy_n(first + 2 + means.size(), products.size(), products.begin());
  return moments;
}

template <typename Moments>
void append_moments(const Moments& moments, std::vector<double>& sums) {
  const auto& [weight, squared_weight, means, products] = moments;
  sums.insert(sums.end(), {weight, squared_weight});
  sums.insert(sums.end(), means.begin(), means.end());
  sums.insert(sums.end(), products.begin(), products.end());
}

DiscountedMean make_mean(const std::pair<double, double>& mean) { return {.weight = mean.first, .mean = mean.second}; }

GroupSums make_sums(const double* row) {
  return {make_moments<MeasuredMoments>(row), make_moments<MeasuredMoments>(row + measured_count),
          make_moments<ControlMoments>(row + 2 * measured_count), make_mean({row[sum_count - 2], row[sum_count - 1]})};
}

FeatureGroup make_group(const IntVector& features, bool uses_past, double priority, std::int64_t count, double fraction,
                        const std::pair<double, double>& change, const std::pair<double, double>& size,
                        const Matrix& sums) {
  require_size("sums", sums.size(), 2 * sum_count);
  return {vector_of(features),
          uses_past,
          priority,
          count,
          fraction,
          make_mean(change),
          make_mean(size),
          make_sums(sums.data()),
          make_sums(sums.data() + sum_count)};
}

std::pair<double, double> as_pair(const DiscountedMean& mean) { return {mean.weight, mean.mean}; }

FloatArray group_sums(const FeatureGroup& group) {
  std::vector<double> rows;
  for (const GroupSums& each : {group.total, group.recent}) {
    append_moments(each.measured, rows);
    append_moments(each.squared, rows);
    append_moments(each.controls, rows);
    rows.insert(rows.end(), {each.differs.weight, each.differs.mean});
  }
  return to_numpy(std::move(rows), {2, sum_count});
}

// Estimate of the mean rise, its variance and the effective number of measurements.
std::tuple<double, double, double> as_tuple(const GroupSums::Estimate& estimate, const GroupSums& sums) {
  return {estimate.rise, estimate.variance, sums.measured.effective_count()};
}

void bind_group(nb::module_& m) {
  nb::class_<FeatureGroup>(m, "FeatureGroup", "Features that are replaced together, and what was measured.")
      .def(nb::new_(&make_group), "features"_a, "uses_past"_a, "priority"_a, "count"_a, "fraction"_a, "change"_a,
           "size"_a, "sums"_a)
      .def_prop_ro_static(
          "sum_count", [](nb::handle) { return sum_count; }, "Number of sums over all rounds.")
      .def_prop_ro(
          "features", [](const FeatureGroup& self) { return as_ints(self.features); }, new_array)
      .def_ro("uses_past", &FeatureGroup::uses_past)
      .def_ro("priority", &FeatureGroup::priority)
      .def_ro("count", &FeatureGroup::count)
      .def_ro("fraction", &FeatureGroup::fraction)
      .def_prop_ro(
          "change", [](const FeatureGroup& self) { return as_pair(self.change); },
          "Weight and mean of the changes of the surrogates.")
      .def_prop_ro(
          "size", [](const FeatureGroup& self) { return as_pair(self.size); },
          "Weight and mean of the size of the rises.")
      .def_prop_ro(
          "differing", [](const FeatureGroup& self) { return as_pair(self.total.differs); },
          "Number of rounds, and the fraction of those in which the earlier row had different values.")
      .def_prop_ro("sums", &group_sums, new_array, "Sums over all rounds and over the recent ones.")
      .def_prop_ro(
          "estimate", [](const FeatureGroup& self) { return as_tuple(self.total.estimate(self.count), self.total); },
          "Estimate of the mean rise, its variance and the effective number of measurements.")
      .def_prop_ro(
          "recent_estimate",
          [](const FeatureGroup& self) {
            return as_tuple(self.recent.recent_estimate(self.total, self.count), self.recent);
          },
          "The same over the recent rounds.")
      .def(
          "__reduce__",
          [](const FeatureGroup& self) {
            return nb::make_tuple(
                nb::type<FeatureGroup>(),
                nb::make_tuple(as_ints(self.features), self.uses_past, self.priority, self.count, self.fraction,
                               as_pair(self.change), as_pair(self.size), group_sums(self)));
          },
          reduce_signature());
}

// In Python, errors are five numbers: weight and mean over all rounds, the same over the recent ones, and the factor by
// which the weights of recent measurements are still to be multiplied.
FloatArray errors_of(const ImportanceParts& parts) {
  return to_numpy(std::vector<double>{parts.total_error.weight, parts.total_error.mean, parts.recent_error.weight,
                                      parts.recent_error.mean, parts.recent_factor});
}

// Earlier rows, the gradients at them, and their features of the past.
using Sample = std::tuple<Matrix, Matrix, Matrix>;

ImportanceParts make_importance_parts(std::int64_t seed, const Sequence<FeatureGroup>& groups, std::int64_t seen,
                                      const Sample& sample, const Vector& errors, const Vector& last_row,
                                      const std::pair<IntVector, IntVector>& moves, const Matrix& slope_model) {
  const auto& [rows, gradients, past_rows] = sample;
  const std::size_t d = rows.shape(1);
  require_size("errors", errors.size(), 5);
  require_size("gradients", gradients.shape(0), rows.shape(0));
  require_size("past_rows", past_rows.shape(0), rows.shape(0));
  require_size("a row of gradients", gradients.shape(1), d);
  require_size("slope_model", slope_model.shape(1), d);
  RowBlocks sampled(2 * d + past_rows.shape(1));
  for (std::size_t k = 0; k < rows.shape(0); ++k) {
    double* entry = sampled.add().data();
    for (const Matrix* part : {&rows, &gradients, &past_rows}) {
      entry = std::copy_n(part->data() + k * part->shape(1), part->shape(1), entry);
    }
  }
  ImportanceParts parts{seed,
                        d,
                        past_rows.shape(1),
                        vector_of(groups),
                        seen,
                        std::move(sampled),
                        vector_of(slope_model),
                        {errors(0), errors(1)},
                        {errors(2), errors(3)},
                        errors(4),
                        vector_of(last_row),
                        vector_of(moves.first),
                        vector_of(moves.second)};
  parts.check();
  return parts;
}

std::tuple<FloatArray, FloatArray, FloatArray> sample_of(const ImportanceParts& self) {
  const std::size_t count = self.sample.size();
  FloatArray rows = empty_array<double>({count, self.dimension});
  FloatArray gradients = empty_array<double>({count, self.dimension});
  FloatArray past_rows = empty_array<double>({count, self.past_dimension});
  for (std::size_t k = 0; k < count; ++k) {
    std::ranges::copy(self.row(k), rows.data() + k * self.dimension);
    std::ranges::copy(self.gradient(k), gradients.data() + k * self.dimension);
    std::ranges::copy(self.past_row(k), past_rows.data() + k * self.past_dimension);
  }
  return {std::move(rows), std::move(gradients), std::move(past_rows)};
}

// Returns the same with the model of slopes in the units of a view.
ImportanceParts with_slope_model(const ImportanceParts& self, const FeatureView& view) {
  require(view.dimension == self.dimension, "the view must have as many features");
  ImportanceParts parts = self;
  parts.slope_model = fit_slope_model(self, view);
  return parts;
}

// Returns the same with other groups. The core checks them.
ImportanceParts with_groups(const ImportanceParts& self, const Sequence<FeatureGroup>& groups) {
  ImportanceParts parts = self;
  parts.groups = vector_of(groups);
  return parts;
}

FloatArray slope_model_of(const ImportanceParts& self) {
  return copy_to_numpy<double>(self.slope_model, {self.slope_model.size() / self.dimension, self.dimension});
}

std::pair<IntArray, IntArray> moves_of(const ImportanceParts& self) {
  return {as_ints(self.increases), as_ints(self.decreases)};
}

FloatArray columns_of(const CenterMemory& centers, std::size_t most) {
  return to_numpy(standardized_columns(centers, most), {2 + centers.dimension(), std::min(centers.size(), most)});
}

double correlation_of_ranks(const Vector& one, const Vector& other) {
  require_size("other", other.size(), one.size());
  require(all_finite(span_of(one)) && all_finite(span_of(other)), "values must be finite");
  return rank_correlation(span_of(one), span_of(other));
}

void bind_importance_parts(nb::module_& m) {
  nb::class_<ImportanceParts>(m, "ImportanceParts", "What was measured about the importance of columns.")
      .def(nb::new_(&make_importance_parts), "seed"_a, "groups"_a, "seen"_a, "sample"_a, "errors"_a, "last_row"_a,
           "moves"_a, "slope_model"_a)
      .def_prop_ro_static(
          "max_rows", [](nb::handle) { return ImportanceParts::max_rows; }, "Largest number of rows of the sample.")
      .def_ro("seed", &ImportanceParts::seed)
      .def_ro("groups", &ImportanceParts::groups)
      .def_ro("seen", &ImportanceParts::seen)
      .def_ro("dimension", &ImportanceParts::dimension, "Number of features.")
      .def_ro("past_dimension", &ImportanceParts::past_dimension, "Number of features of the past.")
      .def("with_slope_model", &with_slope_model, "view"_a,
           "Return the same with the regression of the gradients on the rows, in the units of a view.")
      .def("with_groups", &with_groups, "groups"_a, "Return the same with other groups.")
      .def_prop_ro("sample", &sample_of, new_array,
                   "Earlier rows, the gradients at them, and their features of the past.")
      .def_prop_ro(
          "errors", &errors_of, new_array,
          "Weight and mean of the squared errors of all rounds, the same of the recent ones, and the factor by which "
          "the weights of recent measurements are still to be multiplied.")
      .def_prop_ro(
          "last_row", [](const ImportanceParts& self) { return as_vector(self.last_row); }, new_array)
      .def_prop_ro("moves", &moves_of, new_array, "Numbers of increases and decreases of each feature.")
      .def_prop_ro("slope_model", &slope_model_of, new_array,
                   "Regression of the gradients on the standardized rows, one row per feature, then the intercepts; "
                   "may be empty.")
      .def(
          "__reduce__",
          [](const ImportanceParts& self) {
            return nb::make_tuple(nb::type<ImportanceParts>(),
                                  nb::make_tuple(self.seed, self.groups, self.seen, sample_of(self), errors_of(self),
                                                 as_vector(self.last_row), moves_of(self), slope_model_of(self)));
          },
          reduce_signature());
}

}  // namespace

void bind_importance(nb::module_& m) {
  bind_group(m);
  bind_importance_parts(m);
  m.def("standardized_columns", &columns_of, "centers"_a, "most"_a,
        "Return mean rounds, mean labels and each feature of some centers, evenly spaced: rows of mean 0 and length 1, "
        "0 for constants.");
  m.def("rank_correlation", &correlation_of_ranks, "one"_a, "other"_a,
        "Return the correlation of the ranks of two arrays, 0 if one of them is constant.");
}

}  // namespace ellipack
