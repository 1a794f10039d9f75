#include "local_models.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "batched_cholesky.hpp"
#include "batched_kriging.hpp"

namespace ellipack {

using simd::Double4;
using simd::Doubles;

template void factor<2>(double* entries, std::size_t size, std::size_t width);
template void factor<4>(double* entries, std::size_t size, std::size_t width);
template void factor<8>(double* entries, std::size_t size, std::size_t width);

namespace {

using std::numbers::sqrt3;
constexpr double min_nugget = 1e-6;          // keeps correlation matrices of duplicates invertible for any label counts
constexpr double min_variance = 1e-290;      // with less variance, neighbors are treated as equal
constexpr double relative_rounding = 1e-14;  // relative rounding error of a mean offset
constexpr std::size_t mean_neighbors = 16;   // neighbors that the local mean uses
constexpr std::array<double, LocalLinearFits::fits> ridges = {0.01, 0.1};
// A short correlation with a small nugget follows the labels; a long one with a large nugget smooths them.
constexpr Double4 nuggets = {0.01, 0.1, 0.01, 0.1};
constexpr double trend_nugget = 0.03;
// Loss of correlation over the time from the first round to the current one.
constexpr std::array aging_rates = {0.0, 0.2, 1.0, 5.0};

// Number of systems that are solved at once, and of pairs of neighbors whose correlations are computed at once: 4 or 8.
constexpr std::size_t systems_at_once = simd::lane_count<Doubles>;

// Returns exp(-x) for x from 0 to 0.35 by its power series, to full precision. The distance between two neighbors is at
// most twice that of the farthest one from the query, which bounds x.
Doubles exp_negative(Doubles x) {
  constexpr int terms = 12;
  constexpr auto coefficients = [] {
    std::array<double, terms + 1> out{};
    double value = 1.0;
    for (int k = 0; k <= terms; ++k) {
      out[k] = value;
      value /= -(k + 1);
    }
    return out;
  }();
  auto sum = simd::splat<Doubles>(coefficients[terms]);
  for (int k = terms - 1; k >= 0; --k) {
    sum = sum * x + coefficients[k];
  }
  return sum;
}

// Stores the entries of both halves of the systems for several consecutive neighbors, one in each lane of `values`.
template <typename V>
void store_entries(double* by_distance, double* by_distance_and_age,
                   const std::array<V, KrigingSystems::covariances>& values) {
  if constexpr (simd::lane_count<V> == KrigingSystems::covariances) {  // the halves are next to each other
    simd::store_transposed(by_distance, values);
  } else {
    const auto& [a, b, c, d, e, f, g, h] = values;
    simd::store_transposed(by_distance, systems_at_once, a, b, c, d);
    simd::store_transposed(by_distance_and_age, systems_at_once, e, f, g, h);
  }
}

std::size_t rounded_up(std::size_t size, std::size_t to) { return (size + to - 1) / to * to; }

}  // namespace

Neighborhood::Neighborhood(std::size_t capacity, std::size_t d)
    : dimension(d),
      squared_distances(capacity),
      labels(capacity),
      label_counts(capacity),
      ages(capacity),
      trend(capacity),
      forgetting_trend(capacity),
      offsets(capacity * d) {}

double mean_label(const Neighborhood& near, std::size_t count) {
  double total = 0.0;
  double label = 0.0;
  for (std::size_t j = 0; j < count; ++j) {
    total += near.label_counts[j];
    label += near.label_counts[j] * near.labels[j];
  }
  return label / total;
}

LocalLinearFits::LocalLinearFits(std::size_t capacity, std::size_t fit_dimension)
    : fit_dimension_(fit_dimension),
      stride_(rounded_up(fit_dimension + 1, 4)),
      weights_(rounded_up(capacity, 4)),
      mean_(fit_dimension),
      gram_(fit_dimension * stride_),
      centered_(4 * stride_),
      systems_(fits * fit_dimension * (fit_dimension + 1)),
      slopes_(fits * fit_dimension) {}

void LocalLinearFits::fill(const Neighborhood& near) {
  accumulate(near, std::min(LocalModels::neighbors_of_fit(fit_dimension_), near.count));
  set_systems();
}

// Accumulates the weighted Gram matrix of the centered offsets, its right-hand side and the weighted mean label.
void LocalLinearFits::accumulate(const Neighborhood& near, std::size_t count) {
  const double last = near.squared_distances[count - 1];
  double total = 0.0;
  double label = 0.0;
  std::ranges::fill(mean_, 0.0);
  std::ranges::fill(gram_, 0.0);
  for (std::size_t j = 0; j < count; ++j) {
    const double weight = near.label_counts[j] * (last > 0.0 ? 1.0 - near.squared_distances[j] / last : 1.0);
    const auto offset = near.offset(j);
    weights_[j] = weight;
    total += weight;
    label += weight * near.labels[j];
    for (std::size_t i = 0; i < fit_dimension_; ++i) {
      mean_[i] += weight * offset[i];
    }
  }
  min_trace_ = min_variance;
  if (total <= 0.0) {
    mean_label_ = mean_label(near, count);
    return;
  }
  label /= total;
  mean_label_ = label;
  for (double& value : mean_) {
    value /= total;
    min_trace_ += total * (relative_rounding * value) * (relative_rounding * value);
  }
  std::fill(weights_.begin() + count, weights_.begin() + rounded_up(count, 4), 0.0);
  // Add four neighbors at a time, so that each entry of the matrix is loaded once for them.
  for (std::size_t first = 0; first < count; first += 4) {
    center(near, first, count, label);
    const double* rows = centered_.data();
    for (std::size_t i = 0; i < fit_dimension_; ++i) {
      const double a = weights_[first] * rows[i];
      const double b = weights_[first + 1] * rows[stride_ + i];
      const double c = weights_[first + 2] * rows[2 * stride_ + i];
      const double d = weights_[first + 3] * rows[3 * stride_ + i];
      for (std::size_t m = i / 4 * 4; m < stride_; m += 4) {
        double* at = gram_.data() + i * stride_ + m;
        auto sum = simd::load<Double4>(at) + a * simd::load<Double4>(rows + m);
        sum = sum + b * simd::load<Double4>(rows + stride_ + m);
        sum = sum + c * simd::load<Double4>(rows + 2 * stride_ + m);
        sum = sum + d * simd::load<Double4>(rows + 3 * stride_ + m);
        simd::store(at, sum);
      }
    }
  }
}

// Computes the centered offsets and labels of four neighbors. After the last neighbor, rows are repeated; their weight
// is 0.
void LocalLinearFits::center(const Neighborhood& near, std::size_t first, std::size_t count, double label) {
  for (std::size_t row = 0; row < 4; ++row) {
    const std::size_t j = std::min(first + row, count - 1);
    const auto offset = near.offset(j);
    double* out = centered_.data() + row * stride_;
    for (std::size_t i = 0; i < fit_dimension_; ++i) {
      out[i] = offset[i] - mean_[i];
    }
    out[fit_dimension_] = near.labels[j] - label;
  }
}

// Sets the systems of both ridge penalties, which are relative to the mean variance of a coordinate.
void LocalLinearFits::set_systems() {
  double trace = 0.0;
  for (std::size_t i = 0; i < fit_dimension_; ++i) {
    trace += gram_[i * stride_ + i];
  }
  const std::size_t width = fit_dimension_ + 1;
  if (!(trace > min_trace_)) {  // neighbors are equal: set systems whose solutions are 0
    std::ranges::fill(mean_, 0.0);
    std::ranges::fill(systems_, 0.0);
    for (std::size_t i = 0; i < fit_dimension_; ++i) {
      std::fill_n(systems_.begin() + static_cast<std::ptrdiff_t>((i * width + i) * fits), fits, 1.0);
    }
    return;
  }
  // Scale the systems so that a variance is about 1: `min_pivot` is meant for singular matrices, not for small ones.
  // Scales are powers of four, so that scaling does not round.
  const double variance = trace / static_cast<double>(fit_dimension_);
  const int exponent = std::ilogb(variance);
  const double unit = std::ldexp(1.0, (exponent & 1) - exponent);
  for (std::size_t i = 0; i < fit_dimension_; ++i) {
    for (std::size_t m = i; m < width; ++m) {
      for (int fit = 0; fit < fits; ++fit) {
        const double ridge = m == i ? ridges[fit] * trace / static_cast<double>(fit_dimension_) : 0.0;
        systems_[(i * width + m) * fits + fit] = (gram_[i * stride_ + m] + ridge) * unit;
      }
    }
  }
}

void LocalLinearFits::predict(std::span<double> predictions, std::span<double> slope) {
  const std::size_t width = fit_dimension_ + 1;
  for (int fit = 0; fit < fits; ++fit) {
    predictions[fit] = mean_label_;
    for (std::size_t i = fit_dimension_; i-- > 0;) {
      const double* row = systems_.data() + i * width * fits + fit;
      double value = row[fit_dimension_ * fits];
      for (std::size_t m = i + 1; m < fit_dimension_; ++m) {
        value -= row[m * fits] * slopes_[m * fits + fit];
      }
      slopes_[i * fits + fit] = value / row[i * fits];
      predictions[fit] -= slopes_[i * fits + fit] * mean_[i];
    }
  }
  for (std::size_t i = 0; i < fit_dimension_; ++i) {
    slope[i] = slopes_[i * fits];
  }
}

// The last vector of a row may extend beyond the row, and beyond the last row.
KrigingSystems::KrigingSystems(std::size_t capacity, std::size_t dimension)
    : capacity_(capacity),
      stride_(capacity + 1 + systems_at_once),
      columns_((1 + dimension) * stride_),
      systems_(covariances * (capacity * (capacity + kriging_right_sides) + systems_at_once)) {}

double* KrigingSystems::batch(std::size_t first) {
  return systems_.data() + first / systems_at_once * (systems_.size() / 2);
}

double* KrigingSystems::entry(Half half, std::size_t i, std::size_t j) {
  const std::size_t at = (i * width_ + j) * systems_at_once;
  return systems_.data() + at + half * (systems_at_once == covariances ? 4 : systems_.size() / 2);
}

void KrigingSystems::fill(const Neighborhood& near) {
  count_ = std::min(capacity_, near.count);
  width_ = count_ + kriging_right_sides;
  copy_columns(near);
  fill_correlations(std::max(std::sqrt(near.squared_distances[count_ - 1]), min_farthest), near.dimension);
  for (std::size_t i = 0; i < count_; ++i) {
    const double label = near.labels[i];
    const double trend_residual = label - near.trend[i];
    const double residual = label - near.forgetting_trend[i];
    const double labels = near.label_counts[i];
    set_diagonal_and_right_sides(by_distance, i, nuggets / labels, simd::splat<Double4>(label));
    set_diagonal_and_right_sides(by_distance_and_age, i, simd::splat<Double4>(trend_nugget / labels),
                                 Double4{trend_residual, residual, residual, residual});
  }
}

void KrigingSystems::copy_columns(const Neighborhood& near) {
  std::copy_n(near.ages.begin(), count_, columns_.begin());
  for (std::size_t j = 0; j < count_; ++j) {
    const auto offset = near.offset(j);
    for (std::size_t k = 0; k < near.dimension; ++k) {
      columns_[(1 + k) * stride_ + j] = offset[k];
    }
  }
  for (std::size_t k = 0; k <= near.dimension; ++k) {
    columns_[k * stride_ + count_] = 0.0;  // the query
  }
}

// Computes the correlations between neighbors and with the query, several pairs at a time.
//
// By distance: exp(-u) and the Matern correlation (1 + v) exp(-v), where u = distance / (length * farthest), v =
// sqrt(3) u, and the lengths are 2 and 5. All are computed from the second and fifth powers of two exponentials.
//
// By distance and age: the long Matern correlation times max(0, 1 - rate |s - t|), a correlation in time. The product
// of two correlations is a correlation.
void KrigingSystems::fill_correlations(double farthest, std::size_t dimension) {
  const double slow_rate = 0.1 / farthest;
  const double fast_rate = sqrt3 * slow_rate;
  const double* ages = columns_.data();
  for (std::size_t i = 0; i < count_; ++i) {
    for (std::size_t j = i + 1; j <= count_; j += systems_at_once) {
      Doubles squared{};
      for (std::size_t k = 0; k < dimension; ++k) {
        const double* column = columns_.data() + (1 + k) * stride_;
        const auto gap = simd::load<Doubles>(column + j) - column[i];
        squared += gap * gap;
      }
      const Doubles distance = simd::sqrt(squared);
      const Doubles slow = exp_negative(slow_rate * distance);
      const Doubles slow2 = slow * slow;
      const Doubles fast = exp_negative(fast_rate * distance);
      const Doubles fast2 = fast * fast;
      const Doubles long_matern = fast2 * (1.0 + 2.0 * fast_rate * distance);
      const Doubles age = simd::abs(simd::load<Doubles>(ages + j) - ages[i]);
      const auto aged = [&](double rate) { return long_matern * simd::max(1.0 - rate * age, Doubles{}); };
      store_entries<Doubles>(
          entry(by_distance, i, j), entry(by_distance_and_age, i, j),
          {slow2 * slow2 * slow, slow2, fast2 * fast2 * fast * (1.0 + 5.0 * fast_rate * distance), long_matern,
           aged(aging_rates[0]), aged(aging_rates[1]), aged(aging_rates[2]), aged(aging_rates[3])});
    }
  }
}

// Sets the diagonal and the right-hand sides of a row whose correlations are computed already.
void KrigingSystems::set_diagonal_and_right_sides(Half half, std::size_t row, Double4 nugget, Double4 label) {
  simd::store(entry(half, row, row), 1.0 + simd::max(nugget, simd::splat<Double4>(min_nugget)));
  simd::store(entry(half, row, count_ + 1), label);
  simd::store(entry(half, row, count_ + 2), simd::splat<Double4>(1.0));
}

LocalModels::LocalModels(std::size_t neighbors, std::size_t fit_dimension, std::size_t dimension)
    : linear_(std::max(neighbors, neighbors_of_fit(fit_dimension)), fit_dimension), kriging_(neighbors, dimension) {}

void LocalModels::predict(const Neighborhood& near, std::span<double> predictions, std::span<double> slope) {
  predictions[0] = mean_label(near, std::min(mean_neighbors, near.count));
  linear_.fill(near);
  factor<LocalLinearFits::fits>(linear_.systems(), linear_.dimension(), linear_.dimension() + 1);
  linear_.predict(predictions.subspan(1, LocalLinearFits::fits), slope);
  kriging_.fill(near);
  const std::size_t count = kriging_.count();
  for (std::size_t first = 0; first < KrigingSystems::covariances; first += systems_at_once) {
    double* systems = kriging_.batch(first);
    factor<systems_at_once>(systems, count, count + kriging_right_sides);
    simd::store(&predictions[1 + LocalLinearFits::fits + first], predict_at_queries<Doubles>(systems, count));
  }
  for (double& prediction : predictions) {
    prediction += near.base;
  }
}

}  // namespace ellipack
