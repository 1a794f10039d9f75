// Recursive least squares, for stacks of experts and global regressions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "checks.hpp"
#include "copy_on_write.hpp"

namespace ellipack {

// Returns the dot product, summed from the first entry to the last.
inline double dot(std::span<const double> left, std::span<const double> right) {
  double total = 0.0;
  for (std::size_t k = 0; k < left.size(); ++k) {
    total += left[k] * right[k];
  }
  return total;
}

// Recursive least squares. Stores the inverse of the regularized Gram matrix and the coefficients.
struct LeastSquares {
  CopyOnWrite<std::vector<double>> inverse;  // symmetric matrix in row-major order
  std::vector<double> coefficients;

  std::size_t size() const { return coefficients.size(); }

  // Throws std::invalid_argument unless the sizes match. Entries may be infinite or NaN, because regressions on extreme
  // rows overflow.
  void check() const {
    require(size() >= 1 && inverse->size() == size() * size(),
            "a regression must have a coefficient and a row of the inverse for each feature");
  }

  // Allocates what `update` and `discount` need, so that they do not throw.
  void make_room() { inverse.write(); }

  double predict(std::span<const double> features) const { return dot(coefficients, features); }

  // Updates the regression by one row. `gain` is a buffer with one entry per feature.
  void update(std::span<const double> features, double target, std::span<double> gain) {
    const std::size_t count = size();
    multiply(features, gain);
    const double divisor = 1.0 + dot(features, gain.first(count));
    // Only rounding makes the divisor less than 1. The row adds no information, and an update would make the inverse
    // grow.
    if (divisor < 1.0) {
      return;
    }
    const double error = (target - predict(features)) / divisor;
    for (std::size_t i = 0; i < count; ++i) {
      coefficients[i] += gain[i] * error;
    }
    // Divide by the square root of the divisor, so that the inverse stays exactly symmetric.
    const double root = std::sqrt(divisor);
    for (std::size_t i = 0; i < count; ++i) {
      gain[i] /= root;
    }
    double* const entries = inverse.write().data();
    for (std::size_t i = 0; i < count; ++i) {
      double* row = entries + i * count;
      const double part = gain[i];
      for (std::size_t j = 0; j < count; ++j) {
        row[j] -= part * gain[j];
      }
    }
  }

  // Discounts the past: rows that are `span` rounds old keep the fraction 1/e of their weight. `factors` is a buffer.
  //
  // The variance of a coefficient stays at or below its prior value. Without this bound, the regression would diverge
  // if a feature never varied.
  void discount(double span, std::span<double> factors) {
    const std::size_t count = size();
    const double kept = 1.0 - 1.0 / span;
    const double growth = std::sqrt(1.0 / kept);
    double* const entries = inverse.write().data();
    for (std::size_t i = 0; i < count; ++i) {
      const double variance = entries[i * count + i];
      factors[i] = 0.0 < variance && variance <= kept ? growth : 1.0;
    }
    for (std::size_t i = 0; i < count; ++i) {
      double* row = entries + i * count;
      for (std::size_t j = 0; j < count; ++j) {
        row[j] *= factors[i] * factors[j];
      }
    }
  }

  // Converts the regression to rescaled features. The old features are ratio * new + shift. The last feature is the
  // constant, with a ratio and a shift of 1. With this map A, the coefficients become A^T theta and the inverse becomes
  // A^T P A. If it throws, nothing has changed.
  void convert(std::span<const double> ratio, std::span<const double> shift);

  // Returns the regression whose inverse is diag(variances) + link link^T - rows^T rows. `rows` has one entry per
  // feature in each row.
  static LeastSquares from_low_rank(std::span<const double> variances, std::span<const double> link,
                                    std::span<const double> rows, std::vector<double> coefficients);

 private:
  // Computes the product of the inverse and `features`. Each sum runs from the first row to the last. Four rows are
  // added at a time, which saves loads and stores of the sums.
  void multiply(std::span<const double> features, std::span<double> product) const {
    const std::size_t count = size();
    std::fill_n(product.begin(), count, 0.0);
    const double* row = inverse->data();
    std::size_t i = 0;
    for (; i + 4 <= count; i += 4, row += 4 * count) {
      for (std::size_t j = 0; j < count; ++j) {
        double sum = product[j];
        sum += features[i] * row[j];
        sum += features[i + 1] * row[count + j];
        sum += features[i + 2] * row[2 * count + j];
        sum += features[i + 3] * row[3 * count + j];
        product[j] = sum;
      }
    }
    for (; i < count; ++i, row += count) {
      for (std::size_t j = 0; j < count; ++j) {
        product[j] += features[i] * row[j];
      }
    }
  }
};

}  // namespace ellipack
