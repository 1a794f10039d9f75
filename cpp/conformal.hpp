// Prediction intervals with a guaranteed coverage on any stream, by adaptive conformal inference.
//
// An interval is [p - a s, p + b s], where p is the prediction and s > 0 a scale, the error to expect. For each
// coverage c, a label outside of the interval is a miss. Let m_a be 1 if the label is below the interval and m_b be 1
// if it is above, and 0 otherwise. After each label, both widths move by a step h:
//
//   a *= exp(h ((m_a - q) + (m_b - q) / 2)),    b *= exp(h ((m_b - q) + (m_a - q) / 2)),    q = (1 - c) / 2.
//
// A miss widens its side much and the other side half as much, a hit narrows both a little; all balance if each side
// misses the fraction q. Widths are kept at 1/1000 or more.
//
// Theorem. Let B be the largest of the scores |label - p| / s of T rounds and of the initial widths. Let h_1 and h_T be
// the first and the last step, and C = 8/3 (ln(1000 B) + h_1) / h_T. Then both sides together have at most
//
//   T (1 - c) + C
//
// misses. Unless a width had to be kept at 1/1000, they have at least T (1 - c) - C, and each side by itself has from
// T q - C to T q + C. This holds on every stream, for any predictions and scales, also if an adversary chooses the
// label after he has seen the interval. If labels are learned up to D rounds after their intervals were published, h_1
// is replaced by (D + 1) h_1.
//
// Proof. Let u = ln a and w = ln b, which are at least -L for L = ln 1000, and f = u - w / 2 and g = w - u / 2. A round
// adds 3/4 h (m_a - q) to f and 3/4 h (m_b - q) to g. Keeping a at 1/1000 raises f and lowers g; keeping b there does
// the opposite. If u > ln B, side a does not miss, and f does not rise. After a round with u <= ln B, u is at most
// ln B + h_1, so that f is at most K = ln B + h_1 + L / 2. Hence f <= K at any time, and likewise g <= K. So the sum
// u + w = 2 (f + g) is from -2 L to 4 K. A round adds at least 3/2 h (m_a + m_b - 2 q) to it, and as much unless a
// width is kept at 1/1000. The steps do not increase, so that summation by parts bounds the sum of m_a + m_b - 2 q over
// the rounds by (4 K + 2 L) / (3/2 h_T) = C, in both directions if no width is kept. Then, as w = 4/3 (g + f / 2) is at
// most 2 K, f is from -L - K to K, and the sum of m_a - q is at most (2 K + L) / (3/4 h_T) = C in size.
//
// Why a miss widens both sides: let X and Y be the excesses of misses, the sums of m_a - q and of m_b - q. The widths
// are exp(h (X + Y / 2)) and exp(h (Y + X / 2)) times the initial ones. The sum X + Y, on which the coverage of a
// stretch of time depends, is thus corrected with steps of 3/2 h, and the difference with steps of h / 2. Widths vary
// as much as with steps of h for both, but the coverage is back sooner.
//
// The scale is the mean error times a weighted mean of three relative scales: 1, the relative scale r of the row, and
// its root. The weights fall exponentially with their losses in the last rounds, ln r + |e| / r for an error e in units
// of the mean error, which is the negative logarithm of the density of a Laplace distribution. So r counts as much as
// it has told about the errors.
//
// If the labels of the last rounds missed more intervals than expected, the scale was too small. It is multiplied by
// exp(x^3), where x from -1 to 1 is the excess of missed intervals, in about the last 400 rounds and of all coverages
// together, divided by 32. The cube hardly changes widths as long as the coverage is about right, and acts strongly in
// stretches where it is not. The theorem holds, because it does for any scales.
//
// Steps have a positive limit, so that the bound is O(1 / T) for the fraction of misses. Widths are multiplied by
// constants from then on, so that a round costs a few nanoseconds.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "checks.hpp"
#include "simd.hpp"

namespace ellipack {

struct ConformalIntervals {
  static constexpr std::size_t size = 8;
  static constexpr std::array<double, size> coverages{0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99};

  // Intervals of all coverages, narrowest first: lower ends, then upper ends.
  using Bounds = std::array<double, 2 * size>;

  static constexpr double smallest_width = 1e-3;
  static constexpr double largest_width = 1e300;
  static constexpr double largest_relative_error = 10.0;

  // Initial widths: quantiles of a normal distribution in units of its mean absolute error.
  static constexpr Bounds normal_widths{
      0.845, 1.055, 1.299, 1.606, 2.062, 2.456, 2.916, 3.228, 0.845, 1.055, 1.299, 1.606, 2.062, 2.456, 2.916, 3.228,
  };

  Bounds widths = normal_widths;  // of the lower sides, then of the upper sides, in units of the scale
  double mean_error = 0.0;        // exponential mean of the absolute errors
  std::int64_t labels = 0;        // number of labels; the mean error is that of all but the first
  std::int64_t rounds = 0;        // number of rounds with an interval

  // Exponential sums of the losses of relative scales r^0, r^(1/2) and r^1.
  using ScaleLosses = std::array<double, 3>;
  ScaleLosses scale_losses{};
  static constexpr double largest_scale_loss = 1e9;

  // Exponential sum of the numbers of missed intervals, less their expectation. It stays 0 unless misses are learned.
  double excess_misses = 0.0;
  static constexpr double largest_excess = 32.0;

  bool operator==(const ConformalIntervals&) const = default;

  // Throws std::invalid_argument unless the state is possible.
  void check() const {
    require(mean_error >= 0.0 && std::isfinite(mean_error), "mean_error must be finite and >= 0");
    require(labels >= 0 && labels <= largest_count && rounds >= 0 && rounds <= largest_count,
            "the numbers of labels and rounds must be from 0 to 2^52");
    require(std::ranges::all_of(widths, [](double x) { return x >= smallest_width && x <= largest_width; }),
            "widths must be from 0.001 to 1e300");
    require(all_within(scale_losses, largest_scale_loss), "scale_losses must be from -1e9 to 1e9");
    require(std::abs(excess_misses) <= largest_excess, "excess_misses must be from -32 to 32");
  }

  // Returns the intervals around a prediction, for the relative scale of its row. An interval contains those of smaller
  // coverages. All are infinite before the second label, when no error is known.
  Bounds around(double prediction, double relative_scale) const {
    return Calibration{widths, scale() * weighted_scale(relative_scale) * scale_factor()}.around(prediction);
  }

  // An interval between two coverages: a share of the way from that of index `near` to that of index `far`.
  struct Position {
    std::size_t near;
    std::size_t far;
    double share;

    // Makes the position 3.25 a quarter of the way from the interval of index 3 to the next one. Throws
    // std::invalid_argument unless the position is from 0 to the last index.
    static Position of(double position) {
      require(position >= 0.0 && position <= static_cast<double>(size - 1), "positions must be from 0 to 7");
      const auto near = static_cast<std::size_t>(position);
      const double share = position - static_cast<double>(near);
      return {near, share > 0.0 ? near + 1 : near, share};
    }

    // Returns an end of the interval from those of both coverages. Infinite ends stay what they are.
    double between(double near_end, double far_end) const {
      return std::isinf(near_end) ? near_end : near_end + share * (far_end - near_end);
    }
  };

  // Positions of the intervals of all coverages.
  static const std::array<Position, size> all_positions;

  struct Interval {
    double lower;
    double upper;
  };

  // What the intervals of a round are made of. Aligned, so that no vector of widths is in two cache lines.
  struct alignas(64) Calibration {
    Bounds widths;
    double scale;

    // Returns the intervals around a prediction. An interval contains those of smaller coverages.
    Bounds around(double prediction) const {
      Bounds bounds;
      double below = 0.0;
      double above = 0.0;
      for (std::size_t k = 0; k < size; ++k) {
        below = std::max(below, widths[k]);
        above = std::max(above, widths[size + k]);
        bounds[k] = prediction - below * scale;
        bounds[size + k] = prediction + above * scale;
      }
      return bounds;
    }

    // Returns one of these intervals.
    Interval around(double prediction, const Position& position) const {
      const Interval near = interval_of(position.near, prediction);
      if (position.share == 0.0) {
        return near;
      }
      const Interval far = interval_of(position.far, prediction);
      return {position.between(near.lower, far.lower), position.between(near.upper, far.upper)};
    }

   private:
    Interval interval_of(std::size_t index, double prediction) const {
      double below = 0.0;
      double above = 0.0;
      for (std::size_t k = 0; k <= index; ++k) {
        below = std::max(widths[k], below);
        above = std::max(widths[size + k], above);
      }
      return {prediction - below * scale, prediction + above * scale};
    }
  };

  // Returns the calibration of a learner without a scale of its own: the mean error is the scale.
  Calibration calibration() const { return {widths, scale()}; }

  // Learns a label by the intervals that were published for it. A round is not counted if they are infinite, or if they
  // are a single point, because no prediction had an error so far, and the label is this point.
  void learn_label(double label, const Bounds& published) {
    if (is_counted(label, published)) {
      move_widths(label, published, factors_after[static_cast<std::size_t>(std::min(rounds, decreasing_steps))]);
      ++rounds;
    }
  }

  // Learns how many of the published intervals a label has missed, by which `around` changes the scale.
  void learn_misses(double label, const Bounds& published) {
    if (!is_counted(label, published)) {
      return;
    }
    double misses = 0.0;
    for (std::size_t k = 0; k < size; ++k) {
      misses += label < published[k] || label > published[size + k] ? 1.0 : 0.0;
    }
    constexpr double kept = 1.0 - 1.0 / 400.0;
    excess_misses = std::clamp(kept * excess_misses + (misses - expected_misses), -largest_excess, largest_excess);
  }

  // Adds the error of a prediction to the mean error, and returns it in units of the mean error before: at most
  // `largest_relative_error`, and 1 if no prediction had an error so far. The first prediction does not count, because
  // nothing was known. `relative_scale` is that of the intervals around the prediction.
  double learn_error(double error, double relative_scale) {
    const double size_of_error = std::min(std::abs(error), largest_error);
    const double relative = mean_error > 0.0 ? std::min(size_of_error / mean_error, largest_relative_error) : 1.0;
    add_scale_losses(relative, relative_scale);
    if (labels > 0) {
      mean_error = mean_after(static_cast<double>(labels), mean_error, size_of_error);
    }
    ++labels;
    return relative;
  }

  // Runs a round for each of the predictions of a learner without a scale of its own. The result is the same as by
  // `learn_label` with the intervals around each prediction, and `learn_error`, in a fraction of the time. Calls
  // `publish(first, calibrations)` with the calibrations of consecutive rows, each before the label of its row.
  template <typename Publish>
  void run_rounds(std::span<const double> predictions, std::span<const double> known, Publish publish) {
    std::array<Calibration, most_rounds> before;
    std::size_t row = 0;
    while (row < known.size()) {
      const std::size_t count = std::min(most_rounds, known.size() - row);
      std::size_t done = run_usual_rounds(predictions.subspan(row, count), known.subspan(row, count), before);
      if (done < count) {
        const double prediction = predictions[row + done];
        const double label = known[row + done];
        before[done] = calibration();
        learn_label(label, before[done].around(prediction));
        learn_error(label - prediction, 1.0);
        ++done;
      }
      publish(row, std::span(before).first(done));
      row += done;
    }
  }

 private:
  // Vectors of one register: GCC 12 splits selections of wider ones into single numbers.
  using Doubles = simd::Vec<double, simd::register_bytes >= 32 ? 4 : 2>;
  static constexpr std::size_t lanes = simd::lane_count<Doubles>;
  using PerCoverage = std::array<double, size>;

  static constexpr double memory = 200.0;  // rounds after which the weight of an error falls to 1/e
  static constexpr double largest_error = 1e300;
  static constexpr double expected_misses = 1.58;  // sum of 1 - c over all coverages

  // Returns the mean error; infinity before the second label, when no error is known.
  double scale() const { return labels < 2 ? std::numeric_limits<double>::infinity() : mean_error; }

  // Returns whether a label counts as a round; see `learn_label`.
  static bool is_counted(double label, const Bounds& published) {
    const bool is_point = published[size - 1] == published[2 * size - 1];
    return !std::isinf(published[0]) && !(is_point && label == published[0]);
  }

  // Returns the mean after one more error.
  static double mean_after(double count, double mean, double size_of_error) {
    return mean + (size_of_error - mean) * (1.0 / std::min(count, memory));
  }

  // Returns what the scale is multiplied by because of the misses of the last rounds.
  double scale_factor() const {
    const double x = excess_misses / largest_excess;
    return x == 0.0 ? 1.0 : std::exp(x * x * x);
  }

  // Returns the weighted mean of the three relative scales.
  double weighted_scale(double relative_scale) const {
    if (relative_scale == 1.0) {
      return 1.0;
    }
    const ScaleLosses scales{1.0, std::sqrt(relative_scale), relative_scale};
    const double least = std::ranges::min(scale_losses);
    double weights = 0.0;
    double sum = 0.0;
    for (std::size_t i = 0; i < scales.size(); ++i) {
      const double weight = std::exp(least - scale_losses[i]);
      weights += weight;
      sum += weight * scales[i];
    }
    return sum / weights;
  }

  // Adds the losses of the three relative scales for an error in units of the mean error.
  void add_scale_losses(double error, double relative_scale) {
    if (relative_scale == 1.0) {  // equal losses leave the weights as they are
      return;
    }
    const double root = std::sqrt(relative_scale);
    const double log_root = std::log(root);
    constexpr double kept = 1.0 - 1.0 / memory;
    scale_losses[0] = kept * scale_losses[0] + error;
    scale_losses[1] = kept * scale_losses[1] + log_root + error / root;
    scale_losses[2] = kept * scale_losses[2] + 2.0 * log_root + error / relative_scale;
  }

  // Number of rounds after which steps are the last ones.
  static constexpr std::int64_t decreasing_steps = 46;

  // Returns the step of each coverage after a number of rounds. Their limits are 0.04 sqrt(0.2 / (1 - c)): misses of
  // large coverages are rare, so that their steps are larger.
  static constexpr PerCoverage steps(std::int64_t after) {
    PerCoverage made{0.0253, 0.0283, 0.0327, 0.04, 0.0566, 0.08, 0.1265, 0.1789};
    for (double& step : made) {
      step = std::max(1.25 / (static_cast<double>(after) + 4.0), step);
    }
    return made;
  }

  // Returns exp(x) for |x| < 1/2, with the same bits on all machines.
  static constexpr double small_exp(double x) {
    double term = 1.0;
    double sum = 1.0;
    for (int n = 1; n < 16; ++n) {
      term *= x / n;
      sum += term;
    }
    return sum;
  }

  // What a width is multiplied by after a hit, and after a miss of the other side (0) or of its own side (1).
  struct Factors {
    PerCoverage hit;
    std::array<PerCoverage, 2> miss;

    static constexpr Factors of_steps(const PerCoverage& steps) {
      Factors made{};
      for (std::size_t k = 0; k < size; ++k) {
        const double hits = 1.5 * (1.0 - coverages[k]) / 2.0;
        made.hit[k] = small_exp(-steps[k] * hits);
        made.miss[0][k] = small_exp(steps[k] * (0.5 - hits));
        made.miss[1][k] = small_exp(steps[k] * (1.0 - hits));
      }
      return made;
    }
  };

  // Factors after each number of rounds; the last ones do not change.
  using FactorsAfterRounds = std::array<Factors, static_cast<std::size_t>(decreasing_steps) + 1>;
  static const FactorsAfterRounds factors_after;

  void move_widths(double label, const Bounds& published, const Factors& factors) {
    for (std::size_t k = 0; k < size; ++k) {
      const bool is_below = label < published[k];
      const bool is_above = label > published[size + k];
      if (is_below || is_above) {
        multiply(widths[k], factors.miss[static_cast<std::size_t>(is_below)][k]);
        multiply(widths[size + k], factors.miss[static_cast<std::size_t>(is_above)][k]);
      } else {
        multiply(widths[k], factors.hit[k]);
        multiply(widths[size + k], factors.hit[k]);
      }
    }
  }

  // Returns whether no width can reach a limit within `most_rounds`.
  bool are_far_from_limits() const {
    auto narrowest = simd::load<Doubles>(widths.data());
    Doubles widest = narrowest;
    for (std::size_t k = lanes; k < widths.size(); k += lanes) {
      const auto next = simd::load<Doubles>(&widths[k]);
      narrowest = simd::min(narrowest, next);
      widest = simd::max(widest, next);
    }
    const auto are_far = (narrowest >= 2.0 * smallest_width) & (widest <= 1e-6 * largest_width);
    return simd::to_bits(are_far) == (1U << lanes) - 1;
  }

  // Most rounds of a call of `run_usual_rounds`, in which widths change by a factor from 1/2 to 1e6.
  static constexpr std::size_t most_rounds = 64;

  // Runs rounds while errors are known, the factors are the last ones, and labels differ from their predictions and
  // miss no interval but the narrowest ones. Widths are far from their limits at first, or no round is run. Returns the
  // number of rounds, and writes the calibration before each label.
  //
  // Each round waits for the widths of the one before. So they stay in registers, and are multiplied by the factors of
  // a hit and of a miss before it is known which of them counts. A label can only miss intervals on its side of the
  // prediction. If it is below, both signs are changed, so that only upper ends are compared. Intervals are published
  // in a loop of its own, because there are not enough registers for both.
  std::size_t run_usual_rounds(std::span<const double> predictions, std::span<const double> known,
                               std::span<Calibration> before) {
    if (labels < 2 || !are_far_from_limits()) {
      return 0;
    }
    constexpr std::size_t parts = size / lanes;
    static constexpr std::array<double, 2> signs{1.0, -1.0};
    const Factors& factors = factors_after[static_cast<std::size_t>(std::min(rounds, decreasing_steps))];
    const std::size_t most = rounds < decreasing_steps ? 1 : known.size();
    std::array<Doubles, parts> below;
    std::array<Doubles, parts> above;
    for (std::size_t part = 0; part < parts; ++part) {
      below[part] = simd::load<Doubles>(&widths[part * lanes]);
      above[part] = simd::load<Doubles>(&widths[size + part * lanes]);
    }
    double mean = mean_error;
    auto count = static_cast<double>(labels);
    std::size_t row = 0;
    for (; row < most; ++row, count += 1.0) {
      const double label = known[row];
      const double prediction = predictions[row];
      const auto is_below = static_cast<std::size_t>(label < prediction);
      const double sign = signs[is_below];
      const auto at = simd::splat<Doubles>(sign * label);
      const auto use_below = simd::splat<Doubles>(label) < simd::splat<Doubles>(prediction);
      std::array<simd::MaskOf<Doubles>, parts> reached;
      std::uint32_t hits = 0;
      for (std::size_t part = 0; part < parts; ++part) {
        reached[part] = at <= sign * prediction + (use_below ? below[part] : above[part]) * mean;
        hits |= simd::to_bits(reached[part]) << (part * lanes);
      }
      const std::uint32_t missed = hits ^ 0xFFU;
      if (label == prediction || (missed & (missed + 1)) != 0) {
        break;
      }
      before[row].scale = mean;
      const PerCoverage& below_miss = factors.miss[is_below];
      const PerCoverage& above_miss = factors.miss[1 - is_below];
      for (std::size_t part = 0; part < parts; ++part) {
        simd::store(&before[row].widths[part * lanes], below[part]);
        simd::store(&before[row].widths[size + part * lanes], above[part]);
        const auto hit = simd::load<Doubles>(&factors.hit[part * lanes]);
        below[part] = reached[part] ? below[part] * hit : below[part] * simd::load<Doubles>(&below_miss[part * lanes]);
        above[part] = reached[part] ? above[part] * hit : above[part] * simd::load<Doubles>(&above_miss[part * lanes]);
      }
      mean = mean_after(count, mean, std::min(std::abs(label - prediction), largest_error));
    }
    for (std::size_t part = 0; part < parts; ++part) {
      simd::store(&widths[part * lanes], below[part]);
      simd::store(&widths[size + part * lanes], above[part]);
    }
    mean_error = mean;
    rounds += static_cast<std::int64_t>(row);
    labels += static_cast<std::int64_t>(row);
    return row;
  }

  static void multiply(double& width, double factor) {
    width = std::clamp(width * factor, smallest_width, largest_width);
  }
};

inline constexpr std::array<ConformalIntervals::Position, ConformalIntervals::size> ConformalIntervals::all_positions =
    [] {
      std::array<Position, size> made{};
      for (std::size_t k = 0; k < size; ++k) {
        made[k] = {k, k, 0.0};
      }
      return made;
    }();

inline constexpr ConformalIntervals::FactorsAfterRounds ConformalIntervals::factors_after = [] {
  FactorsAfterRounds made{};
  for (std::size_t rounds = 0; rounds < made.size(); ++rounds) {
    made[rounds] = Factors::of_steps(steps(static_cast<std::int64_t>(rounds)));
  }
  return made;
}();

}  // namespace ellipack
