// Estimates of the mean rise in squared error of a group of features, by a regression of the measured rises on cheap
// controls (see column_importance.hpp), and the moments from which they are computed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "simd.hpp"
#include "surrogates.hpp"

namespace ellipack {

constexpr std::size_t max_sources = 1024;  // stored rows, of which replacements are drawn

constexpr double largest_control = 1e130;  // largest rise, measured or of a control; its square does not overflow

constexpr double square(double value) { return value * value; }

// Rises of the surrogates.
constexpr std::size_t control_count = surrogate_count;
using Controls = SurrogateValues;
using Measured = std::array<double, control_count + 1>;  // controls and, last, the rise

// Weighted means of the controls and the rise, and sums of products of their deviations from the means.
struct MeasuredMoments {
  static constexpr std::size_t count = control_count + 1;

  double weight = 0.0;
  double squared_weight = 0.0;  // sum of squared weights
  Measured means{};
  std::array<double, count*(count + 1) / 2> products{};  // lower triangle, row by row

  double product(std::size_t i, std::size_t j) const { return products[i * (i + 1) / 2 + j]; }

  // Returns the number of equal weights that would determine a mean as well.
  double effective_count() const { return squared_weight > 0.0 ? weight * (weight / squared_weight) : 0.0; }

  void add(double new_weight, const Measured& values);
  void discount(double keep);
};

// Means of the controls, and sums of their squared deviations from the means.
struct ControlMoments {
  double weight = 0.0;
  double squared_weight = 0.0;  // sum of squared weights
  Controls means{};
  Controls squares{};

  double effective_count() const { return squared_weight > 0.0 ? weight * (weight / squared_weight) : 0.0; }

  // Adds values with a weight, after multiplying the weights so far by `keep`.
  void add(const Controls& values, double new_weight, double keep);
  void discount(double keep);
};

// A running mean that may discount earlier values.
struct DiscountedMean {
  double weight = 0.0;
  double mean = 0.0;

  void add(double value, double new_weight, double keep);  // `keep` is the factor of the weight so far
};

// What was measured over all rounds, or over the recent ones.
struct GroupSums {
  MeasuredMoments measured;
  MeasuredMoments squared;  // of the same with squared weights, by which the estimate varies
  ControlMoments controls;  // at all rounds with different values, measured or not
  DiscountedMean differs;   // fraction of these rounds

  // The estimated mean rise and its variance, over all rounds or over the recent ones. The number of all measurements
  // decides how many controls are used.
  struct Estimate {
    double rise = 0.0;
    double variance = 0.0;
    double variance_of_one = 0.0;  // of a single measurement around what the controls explain
  };
  Estimate estimate(std::int64_t count) const;
  Estimate recent_estimate(const GroupSums& all, std::int64_t all_count) const;

  // Adds a measurement.
  void add(double weight, const Measured& values);

  // Multiplies the weights of the measurements.
  void discount(double keep);

  // Returns the standard deviation of a single measurement; if there are few, that of the controls. Dividing
  // measurements among groups in proportion to it minimizes the sum of the variances of all rises.
  double deviation_of_one(const GroupSums& all, std::int64_t all_count) const;

  // Returns the same relative to the root of the rise, which minimizes the sum of the variances relative to the rises.
  double relative_deviation_of_one(std::int64_t count) const;

 private:
  // Returns the estimate, with coefficients from the sums over all rounds, which may be these. The mean residual is
  // shrunk by `prior` residuals of 0.
  Estimate estimate_from(const GroupSums& all, std::int64_t all_count, double prior) const;
};

bool is_valid(const DiscountedMean& mean);
bool is_valid(const GroupSums& sums);

static_assert(control_count == simd::lane_count<simd::Double4>);

// These functions run in every round, and are inline because of that.

inline void ControlMoments::add(const Controls& values, double new_weight, double keep) {
  weight = keep * weight + new_weight;
  squared_weight = keep * keep * squared_weight + new_weight * new_weight;
  const double step = new_weight / weight;
  const double factor = new_weight * (1.0 - step);
  const auto before = simd::load<simd::Double4>(means.data());
  const simd::Double4 gaps = simd::load<simd::Double4>(values.data()) - before;
  simd::store(means.data(), before + step * gaps);
  simd::store(squares.data(), keep * simd::load<simd::Double4>(squares.data()) + factor * gaps * gaps);
}

inline void ControlMoments::discount(double keep) {
  weight *= keep;
  squared_weight *= keep * keep;
  for (double& sum : squares) {
    sum *= keep;
  }
}

inline void DiscountedMean::add(double value, double new_weight, double keep) {
  weight = weight * keep + new_weight;
  mean += new_weight / weight * (value - mean);
}

}  // namespace ellipack
