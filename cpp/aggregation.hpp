// Aggregation of experts: Bernstein online aggregation, and recursive least squares for stacks and global regressions.
//
// The theorem that the aggregation satisfies is in ellipack/learners/aggregation.py, with its proof.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
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

// Bernstein online aggregation. Each expert has its own learning rate, which depends on the squares of its regrets.
struct BernsteinAggregation {
  // Regrets below this value are treated as 0. A learning rate is the inverse of a regret and must be finite.
  static constexpr double min_scale = 1e-290;

  std::vector<double> log_priors;  // logarithms of the initial weights
  std::vector<double> gains;       // sums of regret - rate * regret^2 of the linearized, scaled regret
  std::vector<double> squares;     // sums of regret^2
  double scale = 0.0;              // largest absolute regret to any expert so far

  std::size_t size() const { return log_priors.size(); }

  // Throws std::invalid_argument unless there are at least two experts, each with an entry in all arrays, and all
  // values are in range.
  void check() const {
    require(size() >= 2, "an aggregation must have at least two experts");
    require(gains.size() == size() && squares.size() == size(), "an aggregation must have an entry for each expert");
    require(all_finite(log_priors) && all_finite(gains) && all_finite(squares), "an aggregation must be finite");
    require(std::ranges::all_of(squares, [](double each) { return each >= 0.0; }), "squares must be >= 0");
    require(std::isfinite(scale) && (scale == 0.0 || scale >= min_scale), "scale must be 0 or at least 1e-290");
  }

  // Computes the weights of the experts, which add up to 1.
  void compute_weights(std::span<double> weights) const {
    const double log_count = std::log(static_cast<double>(size()));
    double largest = -std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < size(); ++k) {
      weights[k] = log_priors[k];
      if (scale > 0.0) {
        const double rate = rate_of(k, scale, log_count);
        weights[k] += std::log(rate) + rate * gains[k];
      }
      largest = std::max(largest, weights[k]);
    }
    double total = 0.0;
    for (std::size_t k = 0; k < size(); ++k) {
      weights[k] = std::exp(weights[k] - largest);
      total += weights[k];
    }
    for (std::size_t k = 0; k < size(); ++k) {
      weights[k] /= total;
    }
  }

  // Updates the aggregation by the label of a round. The experts predicted `predictions`, the aggregation `prediction`.
  void update(std::span<const double> predictions, double prediction, double label) {
    const double before = scale;
    const double error = 2.0 * (prediction - label);
    double after = before;
    for (const double expert : predictions) {
      after = std::max(after, std::abs(error * (prediction - expert)));
    }
    if (after < min_scale) {
      return;
    }
    scale = after;
    if (before <= 0.0) {
      return;
    }
    const double log_count = std::log(static_cast<double>(size()));
    for (std::size_t k = 0; k < size(); ++k) {
      // Shrink regrets to the scale that determined the rates, which was set before the label was known.
      const double regret = error * (prediction - predictions[k]) * (before / after);
      const double rate = rate_of(k, before, log_count);
      gains[k] += regret - rate * regret * regret;
      squares[k] += regret * regret;
    }
  }

 private:
  double rate_of(std::size_t k, double largest_regret, double log_count) const {
    const double largest_rate = 0.5 / largest_regret;
    return squares[k] <= 0.0 ? largest_rate : std::min(largest_rate, std::sqrt(log_count / squares[k]));
  }
};

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

  // Returns the same regression on rescaled features. The old features are ratio * new + shift. The last feature is the
  // constant, with a ratio and a shift of 1. With this map A, the coefficients become A^T theta and the inverse becomes
  // A^T P A.
  LeastSquares converted(std::span<const double> ratio, std::span<const double> shift) const {
    const std::size_t count = size();
    const double* const old = inverse->data();
    std::vector<double> entries(count * count);
    std::vector<double> new_coefficients(count);
    std::vector<double> last(count);
    multiply(shift, last);
    for (std::size_t i = 0; i + 1 < count; ++i) {
      for (std::size_t j = 0; j + 1 < count; ++j) {
        entries[i * count + j] = old[i * count + j] * (ratio[i] * ratio[j]);
      }
      entries[i * count + count - 1] = last[i] * ratio[i];
      entries[(count - 1) * count + i] = last[i] * ratio[i];
      new_coefficients[i] = coefficients[i] * ratio[i];
    }
    entries.back() = dot(shift, last);
    new_coefficients.back() = dot(shift, coefficients);
    return {std::move(entries), std::move(new_coefficients)};
  }

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
