#include "rise_estimates.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "checks.hpp"

namespace ellipack {

namespace {

constexpr double few_measurements = 4.0;    // for which the controls say how much the rises vary
constexpr double prior_measurements = 1.0;  // residuals of 0 that are added to the recent ones
constexpr std::size_t measurements_per_control = 3;
constexpr double source_part = 0.25;      // of the variance of a rise, by the source; exact for linear effects
constexpr double min_unexplained = 1e-3;  // fraction of the variance of a control that others leave
constexpr double largest_sum = 1e300;
constexpr double largest_mean = 2.0 * largest_control;  // of rises and controls

bool are_valid_weights(double weight, double squared_weight) {
  return weight >= 0.0 && squared_weight >= 0.0 && all_within(std::array{weight, squared_weight}, largest_sum);
}

bool is_valid(const MeasuredMoments& moments) {
  bool valid = are_valid_weights(moments.weight, moments.squared_weight) && all_within(moments.means, largest_mean) &&
               all_within(moments.products, largest_sum);
  for (std::size_t i = 0; i < MeasuredMoments::count; ++i) {
    valid = valid && moments.product(i, i) >= 0.0;
  }
  return valid;
}

bool is_valid(const ControlMoments& moments) {
  return are_valid_weights(moments.weight, moments.squared_weight) && all_within(moments.means, largest_mean) &&
         all_within(moments.squares, largest_sum) && std::ranges::min(moments.squares) >= 0.0;
}

// Lower triangular factor of the covariances of controls. A control that those before it explain is left out, and so is
// one for which there are too few measurements: its diagonal is 0.
struct ControlFactor {
  std::array<Controls, control_count> rows{};
  std::size_t rank = 0;

  ControlFactor(const MeasuredMoments& measured, std::int64_t count);

  // Returns the solution of a system with this factor, for the controls that are not left out.
  Controls solve(const Controls& right) const;

  // The same with the transposed factor.
  Controls solve_transposed(const Controls& right) const;
};

ControlFactor::ControlFactor(const MeasuredMoments& measured, std::int64_t count) {
  for (std::size_t i = 0; i < control_count; ++i) {
    Controls covariances{};
    for (std::size_t j = 0; j < i; ++j) {
      covariances[j] = measured.product(i, j) / measured.weight;
    }
    rows[i] = solve(covariances);
    const double variance = measured.product(i, i) / measured.weight;
    const double rest = variance - std::inner_product(rows[i].begin(), rows[i].end(), rows[i].begin(), 0.0);
    const std::size_t needed = measurements_per_control * (rank + 1);
    if (rest > min_unexplained * variance && std::cmp_greater_equal(count, needed)) {
      rows[i][i] = std::sqrt(rest);
      ++rank;
    }
  }
}

Controls ControlFactor::solve(const Controls& right) const {
  Controls solution{};
  for (std::size_t i = 0; i < control_count; ++i) {
    const double known = std::inner_product(solution.begin(), solution.begin() + i, rows[i].begin(), 0.0);
    solution[i] = rows[i][i] > 0.0 ? (right[i] - known) / rows[i][i] : 0.0;
  }
  return solution;
}

Controls ControlFactor::solve_transposed(const Controls& right) const {
  Controls solution{};
  for (std::size_t i = control_count; i-- > 0;) {
    double known = 0.0;
    for (std::size_t j = i + 1; j < control_count; ++j) {
      known += rows[j][i] * solution[j];
    }
    solution[i] = rows[i][i] > 0.0 ? (right[i] - known) / rows[i][i] : 0.0;
  }
  return solution;
}

// Regression of the rises on the controls.
struct ControlRegression {
  ControlFactor factor;
  Controls covariances{};  // of the controls with the rise
  Controls coefficients{};

  ControlRegression(const MeasuredMoments& measured, std::int64_t count) : factor(measured, count) {
    for (std::size_t i = 0; i < control_count; ++i) {
      covariances[i] = measured.product(control_count, i) / measured.weight;
    }
    coefficients = factor.solve_transposed(factor.solve(covariances));
  }
};

// Returns the effective number of earlier rows that gave replacements in so many rounds: the inverse of the probability
// that two rounds have the same source. While there are at most n rows, that of rounds s < t is 1 / t. Afterwards, it
// is s / (n t): with probability s / t, the row of round s is still among the n rows in round t.
double effective_sources(double rounds) {
  constexpr auto n = static_cast<double>(max_sources);
  if (rounds <= n) {
    return 0.5 * rounds;
  }
  return square(rounds) / (2.0 * n + n * std::log(rounds / n) + 0.5 * (square(rounds) - n * n) / n);
}

// Returns the coefficients of a residual: the rise without what the controls explain.
Measured contrast(const Controls& coefficients) {
  Measured signs;
  std::ranges::transform(coefficients, signs.begin(), std::negate());
  signs.back() = 1.0;
  return signs;
}

// Returns the weighted sum of squares of a linear combination of variables, around other means than its own.
double sum_of_squares(const MeasuredMoments& variables, const Measured& coefficients, const Measured& means) {
  double sum = 0.0;
  double difference = 0.0;  // of the mean of the combination
  for (std::size_t i = 0; i < coefficients.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      sum += (i == j ? 1.0 : 2.0) * coefficients[i] * coefficients[j] * variables.product(i, j);
    }
    difference += coefficients[i] * (variables.means[i] - means[i]);
  }
  return std::max(0.0, sum) + variables.weight * square(difference);
}

// Returns about the variance of a linear combination of the controls, as if they were uncorrelated.
double spread_of(const ControlMoments& controls, const Controls& coefficients) {
  double sum = 0.0;
  for (std::size_t i = 0; i < control_count; ++i) {
    sum += square(coefficients[i]) * controls.squares[i];
  }
  return sum / controls.weight;
}

double dot(const Controls& left, const Controls& right) {
  return std::inner_product(left.begin(), left.end(), right.begin(), 0.0);
}

// Returns the factor that makes up for coefficients that were fitted to the residuals.
double factor_of_freedom(const MeasuredMoments& measured, std::size_t rank) {
  const double count = measured.effective_count();
  return count / std::max(1.0, count - static_cast<double>(rank) - 1.0);
}

// Returns the variance of the mean of the residuals. Their number tells how much coefficients have fitted them.
double residual_variance(const GroupSums& sums, const Controls& coefficients, std::size_t rank) {
  if (sums.measured.weight == 0.0) {
    return 0.0;
  }
  const double squares = sum_of_squares(sums.squared, contrast(coefficients), sums.measured.means);
  return squares / square(sums.measured.weight) * factor_of_freedom(sums.measured, rank);
}

// Returns the part of the mean residual that counts.
double part_of_residual(const GroupSums& sums, double prior) {
  const double count = sums.measured.effective_count();
  return count / (count + prior);
}

// Returns the variance of a single measurement around what the controls explain.
double variance_of_measurement(const MeasuredMoments& measured, const ControlRegression& regression) {
  const double squares = sum_of_squares(measured, contrast(regression.coefficients), measured.means);
  return measured.effective_count() > 0.0
             ? squares / measured.weight * factor_of_freedom(measured, regression.factor.rank)
             : 0.0;
}

// Returns the variance of the mean rise that comes from the measurements: from the mean of their residuals, and from
// the coefficients.
double variance_from_measurements(const GroupSums& sums, const GroupSums& all, const ControlRegression& regression,
                                  const Controls& differences, double prior) {
  const double all_residuals = residual_variance(all, regression.coefficients, regression.factor.rank);
  const double ratio = all.measured.effective_count() / (sums.measured.effective_count() + prior);
  const double residuals = std::max(part_of_residual(sums, prior) * residual_variance(sums, regression.coefficients, 0),
                                    ratio * all_residuals);
  const Controls solved = regression.factor.solve(differences);
  return residuals + dot(solved, solved) * all_residuals;
}

// Returns the variance of the mean rise that comes from the means of the controls: rounds and earlier rows are samples.
double variance_from_rounds(const GroupSums& sums, const GroupSums& all, const ControlRegression& regression,
                            double rise) {
  const double all_spread = spread_of(all.controls, regression.coefficients);
  const double explained = all_spread > 0.0 ? std::max(0.0, dot(regression.coefficients, regression.covariances)) *
                                                  (spread_of(sums.controls, regression.coefficients) / all_spread)
                                            : 0.0;
  const double fraction = sums.differs.mean;
  const double variance_of_round = fraction * (explained + (1.0 - fraction) * square(rise));
  return variance_of_round *
         (fraction / sums.controls.effective_count() + source_part / effective_sources(sums.differs.weight));
}

}  // namespace

bool is_valid(const DiscountedMean& mean) {
  return mean.weight >= 0.0 && all_within(std::array{mean.weight, mean.mean}, largest_sum);
}

bool is_valid(const GroupSums& sums) {
  return is_valid(sums.measured) && is_valid(sums.squared) && is_valid(sums.controls) && is_valid(sums.differs) &&
         sums.differs.mean >= 0.0 && sums.differs.mean <= 1.0;
}

void MeasuredMoments::add(double new_weight, const Measured& values) {
  weight += new_weight;
  squared_weight += new_weight * new_weight;
  const double step = new_weight / weight;
  Measured gaps;  // from the means before
  for (std::size_t i = 0; i < count; ++i) {
    gaps[i] = values[i] - means[i];
    means[i] += step * gaps[i];
  }
  const double factor = new_weight * (1.0 - step);
  std::size_t place = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      products[place] += factor * gaps[i] * gaps[j];
      ++place;
    }
  }
}

void MeasuredMoments::discount(double keep) {
  weight *= keep;
  squared_weight *= keep * keep;
  for (double& product : products) {
    product *= keep;
  }
}

// The regression estimator of a mean. With the covariances S of the controls, their covariances s with the rise, and
// the difference D between the means of the controls at all rounds and at the measured ones, the estimate is the mean
// rise plus b' D, where b = S^-1 s. Its variance comes from the squares of the weighted residuals, which a few large
// ones may dominate (the sandwich estimate), from the coefficients b, and from the means of the controls, which explain
// the variance b' s of the rises. In recent rounds, that is as much larger or smaller as the variances of the controls.
GroupSums::Estimate GroupSums::estimate(std::int64_t count) const { return estimate_from(*this, count, 0.0); }

// In recent rounds, the coefficients are those of all rounds. There may be few recent measurements: the mean of their
// residuals is shrunk to that of all rounds, which is 0. They may be too few to tell how large they are, too: they
// count as at least as large as in all rounds.
GroupSums::Estimate GroupSums::recent_estimate(const GroupSums& all, std::int64_t all_count) const {
  return estimate_from(all, all_count, prior_measurements);
}

GroupSums::Estimate GroupSums::estimate_from(const GroupSums& all, std::int64_t all_count, double prior) const {
  if (all.measured.weight == 0.0 || controls.squared_weight == 0.0 || differs.weight == 0.0) {
    return {};
  }
  const ControlRegression regression(all.measured, all_count);
  const double part = part_of_residual(*this, prior);
  Measured shifts;  // of the means from those of all measurements
  for (std::size_t i = 0; i < shifts.size(); ++i) {
    shifts[i] = part * (measured.means[i] - all.measured.means[i]);
  }
  Controls differences;  // of the means of the controls at all rounds from those at the measured ones
  for (std::size_t i = 0; i < control_count; ++i) {
    differences[i] = controls.means[i] - all.measured.means[i] - shifts[i];
  }
  // The mean rise in rounds with different values, and a part of its variance.
  const double rise = all.measured.means.back() + shifts.back() + dot(regression.coefficients, differences);
  const double variance = variance_from_measurements(*this, all, regression, differences, prior);
  const double fraction = differs.mean;
  return {.rise = fraction * rise,
          .variance = square(fraction) * variance + variance_from_rounds(*this, all, regression, rise),
          .variance_of_one = square(fraction) * variance_of_measurement(measured, regression)};
}

void GroupSums::add(double weight, const Measured& values) {
  measured.add(weight, values);
  squared.add(weight * weight, values);
}

void GroupSums::discount(double keep) {
  measured.discount(keep);
  squared.discount(keep * keep);
}

double GroupSums::deviation_of_one(const GroupSums& all, std::int64_t all_count) const {
  if (measured.effective_count() >= few_measurements) {
    return std::sqrt(estimate_from(all, all_count, 0.0).variance_of_one);
  }
  double variance = 0.0;
  for (std::size_t i = 0; i < control_count && controls.weight > 0.0; ++i) {
    variance = std::max(variance, controls.squares[i] / controls.weight);
  }
  return differs.mean * std::sqrt(variance);
}

// A rise that is less than its standard error counts as that.
double GroupSums::relative_deviation_of_one(std::int64_t count) const {
  const auto [rise, variance, _] = estimate(count);
  const double scale = std::max(rise, std::sqrt(variance));
  return scale > 0.0 ? deviation_of_one(*this, count) / std::sqrt(scale) : 0.0;
}

}  // namespace ellipack
