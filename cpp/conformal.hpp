// Prediction intervals with a guaranteed coverage on any stream, by adaptive conformal inference.
//
// An interval is [p - exp(a) s, p + exp(b) s], where p is the prediction and s > 0 a scale, the error to expect. For
// each coverage c, a label outside of the interval is a miss. After each label, both sides move on their own:
//
//   a += step * (missed below - (1 - c) / 2),    b += step * (missed above - (1 - c) / 2).
//
// A miss widens the side much, a hit narrows it a little; both balance if the fraction of misses is (1 - c) / 2.
//
// The logarithms a and b are kept at -7 or more.
//
// Theorem. Let B be the largest of the scores |label - p| / s of T rounds and of the initial widths. Let h_1 and h_T be
// the first and the last step. Then a side of the interval has at most
//
//   T (1 - c) / 2 + (ln B + 7 + h_1) / h_T
//
// misses, and at least T (1 - c) / 2 - (ln B + 7 + h_1) / h_T unless its logarithm had to be kept at -7. This holds on
// every stream, for any predictions and scales, also if an adversary chooses the label after he has seen the interval.
// If labels are learned up to D rounds after their intervals were published, h_1 is replaced by (D + 1) h_1.
//
// Proof. Only widths below B can miss, so that -7 <= b <= ln B + h_1 at any time. Let m_t be 1 in a miss and 0
// otherwise. Then m_t - (1 - c) / 2 <= (b_(t+1) - b_t) / h_t, with equality unless b_(t+1) is kept at -7. The steps do
// not increase. Summation by parts bounds the sum over t by (max b - min b) / h_T, in both directions.
//
// Steps have a positive limit, so that the bound is O(1 / T) for the fraction of misses.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "checks.hpp"

namespace ellipack {

struct ConformalIntervals {
  static constexpr std::size_t size = 8;
  static constexpr std::array<double, size> coverages{0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99};

  // Intervals of all coverages, narrowest first: lower ends, then upper ends.
  using Bounds = std::array<double, 2 * size>;

  static constexpr double smallest_log_width = -7.0;
  static constexpr double largest_log_width = 700.0;  // so that widths are finite
  static constexpr double largest_relative_error = 10.0;

  double mean_error = 0.0;     // exponential mean of the absolute errors
  std::int64_t labels = 0;     // number of labels; the mean error is that of all but the first
  std::int64_t rounds = 0;     // number of rounds with an interval
  Bounds log_widths = normal;  // logarithms of the widths of each side, in units of the scale

  // Throws std::invalid_argument unless the state is possible.
  void check() const {
    require(mean_error >= 0.0 && std::isfinite(mean_error), "mean_error must be finite and >= 0");
    require(labels >= 0 && labels <= largest_count && rounds >= 0 && rounds <= largest_count,
            "the numbers of labels and rounds must be from 0 to 2^52");
    require(std::ranges::all_of(log_widths, [](double x) { return x >= smallest_log_width && x <= largest_log_width; }),
            "log_widths must be from -7 to 700");
  }

  // Returns the intervals around a prediction. The scale is `relative_scale` times the mean error. An interval contains
  // those of smaller coverages. All are infinite before the second label, when no error is known.
  Bounds around(double prediction, double relative_scale) const {
    Bounds bounds;
    const double scale = mean_error * relative_scale;
    double below = 0.0;
    double above = 0.0;
    for (std::size_t k = 0; k < size; ++k) {
      below = std::max(below, std::exp(log_widths[k]));
      above = std::max(above, std::exp(log_widths[size + k]));
      bounds[k] = labels > 1 ? prediction - below * scale : -std::numeric_limits<double>::infinity();
      bounds[size + k] = labels > 1 ? prediction + above * scale : std::numeric_limits<double>::infinity();
    }
    return bounds;
  }

  // Learns a label by the intervals that were published for it. A round is not counted if they are infinite, or if they
  // are a single point, because no prediction had an error so far, and the label is this point.
  void learn_label(double label, const Bounds& published) {
    const bool is_point = published[size - 1] == published[2 * size - 1];
    if (std::isinf(published[0]) || (is_point && label == published[0])) {
      return;
    }
    for (std::size_t k = 0; k < size; ++k) {
      const double tail = (1.0 - coverages[k]) / 2.0;
      const double step = step_size(k);
      move(log_widths[k], step * ((label < published[k] ? 1.0 : 0.0) - tail));
      move(log_widths[size + k], step * ((label > published[size + k] ? 1.0 : 0.0) - tail));
    }
    ++rounds;
  }

  // Adds the error of a prediction to the mean error, and returns it in units of the mean error before: at most
  // `largest_relative_error`, and 1 if no prediction had an error so far. The first prediction does not count, because
  // nothing was known.
  double learn_error(double error) {
    const double size_of_error = std::min(std::abs(error), largest_error);
    const double relative = mean_error > 0.0 ? std::min(size_of_error / mean_error, largest_relative_error) : 1.0;
    if (labels > 0) {
      mean_error += (size_of_error - mean_error) / std::min(static_cast<double>(labels), memory);
    }
    ++labels;
    return relative;
  }

  // Returns the step of the next round for a coverage.
  double step_size(std::size_t coverage) const {
    return std::max(1.25 / (static_cast<double>(rounds) + 4.0), last_steps[coverage]);
  }

 private:
  static constexpr double memory = 200.0;  // rounds after which the weight of an error falls to 1/e
  static constexpr double largest_error = 1e300;

  // Limits of the steps, 0.05 sqrt(0.2 / (1 - c)). Misses of large coverages are rare, so that their steps are larger.
  static constexpr std::array<double, size> last_steps{0.0316, 0.0354, 0.0408, 0.05, 0.0707, 0.1, 0.1581, 0.2236};

  // Initial widths: quantiles of a normal distribution in units of its mean absolute error, as logarithms.
  static constexpr Bounds normal{
      -0.168, 0.0534, 0.2616, 0.4739, 0.7234, 0.8987, 1.0701, 1.172,
      -0.168, 0.0534, 0.2616, 0.4739, 0.7234, 0.8987, 1.0701, 1.172,
  };

  static void move(double& log_width, double by) {
    log_width = std::clamp(log_width + by, smallest_log_width, largest_log_width);
  }
};

}  // namespace ellipack
