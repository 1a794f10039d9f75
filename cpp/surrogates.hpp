// Cheap surrogates of the prediction, for the importance of columns: how they change with the features of another row
// is known without a prediction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ellipack {

// The ridge regressions without and with forgetting, the local fit at the row, and a quadratic function. The first is
// exact for linear effects, the second for those that drift, the last for products and squares of features. Local fits
// follow all, with noise.
constexpr std::size_t surrogate_count = 4;

// One number for each surrogate.
using SurrogateValues = std::array<double, surrogate_count>;

struct Surrogates {
  // Features that are replaced together, beyond which products of two features are left out, to save time.
  static constexpr std::size_t max_paired = 16;

  explicit Surrogates(std::size_t dimension) : slopes(dimension), modeled_slopes(dimension), gaps(dimension) {}

  std::vector<SurrogateValues> slopes;  // at a row, by each standardized feature
  std::vector<double> modeled_slopes;   // those of the quadratic function
  std::span<const double> curvatures;   // of the quadratic function, by each pair of features; may be empty
  std::vector<double> gaps;             // from the row to another one, by each standardized feature

  // Returns by how much the quadratic function changes, beyond its slopes, if these features have their values in the
  // other row.
  double second_order_change(std::span<const std::int64_t> features) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < features.size(); ++i) {
      const auto k = static_cast<std::size_t>(features[i]);
      double slope = 0.5 * curvatures[k * gaps.size() + k] * gaps[k];
      for (std::size_t j = 0; j < i && features.size() <= max_paired; ++j) {
        const auto other = static_cast<std::size_t>(features[j]);
        slope += curvatures[k * gaps.size() + other] * gaps[other];
      }
      sum += slope * gaps[k];
    }
    return sum;
  }
};

}  // namespace ellipack
