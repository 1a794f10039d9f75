// Aggregation of experts: Bernstein online aggregation, and recursive least squares for stacks and global regressions.
//
// The theorem that the aggregation satisfies, with its proof, stands in ellipack/learners/aggregation.py.
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

// The sum of products, from the first to the last.
inline double dot(std::span<const double> left, std::span<const double> right) {
  double total = 0.0;
  for (std::size_t k = 0; k < left.size(); ++k) {
    total += left[k] * right[k];
  }
  return total;
}

// Bernstein online aggregation: each expert has a learning rate of its own, tuned by the squares of its regrets.
struct BernsteinAggregation {
  // Regrets below this count as none: a rate is the inverse of one and must be finite.
  static constexpr double min_scale = 1e-290;

  std::vector<double> log_priors;  // of the weights it began with
  std::vector<double> gains;       // sums of regret - rate * regret^2, the regret being linearized and scaled
  std::vector<double> squares;     // sums of regret^2
  double scale = 0.0;              // the largest regret to any expert so far

  std::size_t size() const { return log_priors.size(); }

  // Throws std::invalid_argument unless there is an entry for each of two or more experts and all are possible.
  void check() const {
    require(size() >= 2, "an aggregation must have at least two experts");
    require(gains.size() == size() && squares.size() == size(), "an aggregation must have an entry for each expert");
    require(all_finite(log_priors) && all_finite(gains) && all_finite(squares), "an aggregation must be finite");
    require(std::ranges::all_of(squares, [](double each) { return each >= 0.0; }), "squares must be >= 0");
    require(std::isfinite(scale) && (scale == 0.0 || scale >= min_scale), "scale must be 0 or at least 1e-290");
  }

  // Fills in the weights of the experts, which add up to 1.
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

  // Observes the label of a round in which the experts predicted `predictions`, and the aggregation `prediction`.
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
      // Shrunk so that no regret exceeds the scale by which rates were set before the label was known.
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

// Recursive least squares: the inverse of the regularized Gram matrix, and the coefficients.
struct LeastSquares {
  CopyOnWrite<std::vector<double>> inverse;  // square, row by row, symmetric
  std::vector<double> coefficients;

  std::size_t size() const { return coefficients.size(); }

  // Throws std::invalid_argument unless the sizes fit. Entries may be infinite or NaN: regressions of absurd rows
  // overflow.
  void check() const {
    require(size() >= 1 && inverse->size() == size() * size(),
            "a regression must have a coefficient and a row of the inverse for each feature");
  }

  double predict(std::span<const double> features) const { return dot(coefficients, features); }

  // Takes in one more row. `gain` is a buffer of as many numbers as there are features.
  void update(std::span<const double> features, double target, std::span<double> gain) {
    const std::size_t count = size();
    multiply(features, gain);
    const double divisor = 1.0 + dot(features, gain.first(count));
    if (divisor < 1.0) {  // by rounding alone: nothing is left to learn in this direction, and the inverse would grow
      return;
    }
    const double error = (target - predict(features)) / divisor;
    for (std::size_t i = 0; i < count; ++i) {
      coefficients[i] += gain[i] * error;
    }
    // By the root of the divisor, so that the inverse stays symmetric to the bit.
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

  // Discounts the past, so that rounds as long ago as `span` count an e-th part. `factors` is a buffer.
  //
  // Coefficients that rows say nothing of become no less certain than by the prior: without that bound, a feature that
  // does not vary would in time make the regression diverge.
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

  // The same regression on features in other units. The old features are ratio * new + shift; the last is the constant,
  // with a ratio and a shift of 1. With that map A the coefficients become A^T theta and the inverse A^T P A.
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
  // Fills in the product of the inverse and `features`, each sum from the first row to the last. Four rows at a time
  // save loads and stores of the sums.
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
