// Aggregation of experts: Bernstein online aggregation.
//
// The theorem that the aggregation satisfies is in ellipack/learners/aggregation.py, with its proof.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "checks.hpp"

namespace ellipack {

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

}  // namespace ellipack
