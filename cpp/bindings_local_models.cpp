// Python bindings of the local models and the batched factorizations, for tests. Learners use them in compiled code
// only.

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "batched_cholesky.hpp"
#include "bindings.hpp"
#include "checks.hpp"
#include "local_models.hpp"
#include "metric_core.hpp"

namespace ellipack {

namespace {

template <typename T>
using Systems = nb::ndarray<const T, nb::numpy, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

void fill(const char* name, const Vector& from, std::size_t count, std::vector<double>& to) {
  require_size(name, from.size(), count);
  std::ranges::copy(span_of(from), to.begin());
}

std::tuple<FloatArray, FloatArray> local_predictions(const Vector& squared_distances, const Vector& labels,
                                                     const Vector& label_counts, const Vector& ages,
                                                     const Vector& trend, const Vector& forgetting_trend,
                                                     const Matrix& offsets, std::size_t neighbors,
                                                     std::size_t fit_dimension) {
  const std::size_t count = squared_distances.size();
  const std::size_t dimension = offsets.shape(1);
  require(count >= 1, "squared_distances must have at least one entry");
  require(neighbors >= 1 && neighbors <= MetricSettings::max_neighbors, "neighbors must be from 1 to 512");
  require(fit_dimension >= 1 && fit_dimension <= dimension,
          "fit_dimension must be from 1 to the number of coordinates");
  require_size("offsets", offsets.shape(0), count);
  // Use only the nearest neighbors, as a round does.
  Neighborhood near(std::max({count, neighbors, LocalModels::neighbors_of_fit(fit_dimension)}), dimension);
  near.count = std::min(count, std::max(neighbors, LocalModels::neighbors_of_fit(fit_dimension)));
  fill("squared_distances", squared_distances, count, near.squared_distances);
  fill("labels", labels, count, near.labels);
  fill("label_counts", label_counts, count, near.label_counts);
  fill("ages", ages, count, near.ages);
  fill("trend", trend, count, near.trend);
  fill("forgetting_trend", forgetting_trend, count, near.forgetting_trend);
  std::ranges::copy(span_of(offsets), near.offsets.begin());
  std::vector<double> predictions(LocalModels::experts);
  std::vector<double> slope(fit_dimension);
  LocalModels(neighbors, fit_dimension, dimension).predict(near, predictions, slope);
  return {to_numpy(std::move(predictions)), to_numpy(std::move(slope))};
}

template <int lanes, typename T>
NumpyArray<T> factored(const Systems<T>& systems) {
  const std::size_t size = systems.shape(0);
  const std::size_t width = systems.shape(1);
  require(width >= size, "systems must have at least as many columns as rows");
  std::vector<T> entries = vector_of(systems);
  factor<lanes>(entries.data(), size, width);
  return to_numpy(std::move(entries), {size, width, lanes});
}

FloatArray factor_double(const Systems<double>& systems) {
  switch (systems.shape(2)) {
    case 2:
      return factored<2>(systems);
    case 4:
      return factored<4>(systems);
    case 8:
      return factored<8>(systems);
    default:
      throw std::invalid_argument("systems in double precision must have 2, 4 or 8 lanes");
  }
}

NumpyArray<float> factor_single(const Systems<float>& systems) {
  require(systems.shape(2) == 8 || systems.shape(2) == 16, "systems in single precision must have 8 or 16 lanes");
  return systems.shape(2) == 8 ? factored<8>(systems) : factored<16>(systems);
}

}  // namespace

void bind_local_models(nb::module_& m) {
  using namespace nb::literals;
  m.def("local_predictions", &local_predictions, "squared_distances"_a, "labels"_a, "label_counts"_a, "ages"_a,
        "trend"_a, "forgetting_trend"_a, "offsets"_a, "neighbors"_a, "fit_dimension"_a,
        "Return the predictions of all local experts from one neighborhood, and the slope of the first linear fit.");
  const char* doc =
      "Return the Cholesky factors of interleaved positive definite matrices: entry (i, j, k) belongs to matrix k. "
      "Columns beyond the matrix are right-hand sides.";
  m.def("factor_double", &factor_double, "systems"_a, doc);
  m.def("factor_single", &factor_single, "systems"_a, doc);
}

}  // namespace ellipack
