// Importance of columns, measured by what they do to the error.
//
// At some rounds, a row is predicted once more with the features of one group taken from an earlier row. When the label
// comes, the rise in squared error is added to the sums of the group. A cheap control, the squared change of the ridge
// regression, is computed at all rounds and for all groups. The difference between its mean at all rounds and at those
// that were measured corrects the mean of the rises, which reduces its variance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ellipack {

// Weighted means, and sums of squared deviations, of the rises and their controls.
struct RiseMoments {
  double weight = 0.0;
  double squared_weight = 0.0;  // sum of squared weights
  double rise = 0.0;
  double control = 0.0;
  double rise_squares = 0.0;
  double products = 0.0;
  double control_squares = 0.0;

  void add(double new_weight, double new_rise, double new_control);
  void fade(double factor);

  // Returns the variance of the rises that the controls do not explain.
  double residual_variance() const;
};

// A running mean that may forget.
struct FadingMean {
  double weight = 0.0;
  double mean = 0.0;

  void add(double value, double keep);  // `keep` is the factor of the weight so far
};

// What was measured over all rounds, or over the recent ones.
struct GroupSums {
  RiseMoments moments;
  FadingMean controls;  // at all rounds
};

// Features that are replaced together.
struct FeatureGroup {
  std::vector<std::int64_t> features;
  bool uses_past = false;  // whether the features of the past are replaced, too
  double priority = 1.0;   // of its standard error, when the next group to measure is chosen
  std::int64_t count = 0;  // number of measurements
  double credit = 0.0;     // measurements that are due
  GroupSums total;
  GroupSums recent;
};

// The complete state.
struct ImportanceParts {
  static constexpr std::size_t max_rows = 256;     // of which replacements are drawn
  static constexpr std::int64_t first_round = 16;  // before, predictions are too poor to measure

  std::int64_t seed = 0;
  std::size_t dimension = 0;       // number of features
  std::size_t past_dimension = 0;  // number of features of the past
  std::vector<FeatureGroup> groups;
  std::int64_t seen = 0;          // number of rows so far
  std::vector<double> rows;       // uniform sample of them
  std::vector<double> past_rows;  // their features of the past
  FadingMean total_error;         // squared errors of all rounds
  FadingMean recent_error;
  std::vector<double> last_row;
  std::vector<std::int64_t> increases;  // of each feature from a row to the next
  std::vector<std::int64_t> decreases;

  std::size_t row_count() const { return rows.size() / dimension; }
  std::span<const double> row(std::size_t k) const { return {rows.data() + k * dimension, dimension}; }
  std::span<const double> past_row(std::size_t k) const {
    return {past_rows.data() + k * past_dimension, past_dimension};
  }

  // Throws std::invalid_argument unless the parts are valid and consistent.
  void check() const;
};

class ColumnImportance {
 public:
  // Throws std::invalid_argument unless the parts are valid.
  explicit ColumnImportance(ImportanceParts parts);

  const ImportanceParts& parts() const { return parts_; }

  // Returns the number of the stored row that provides replacements in a round; none before the first row.
  std::optional<std::size_t> source_row(std::int64_t round) const;

  // Returns the group to measure in a round; none in most rounds.
  std::optional<std::size_t> group_to_measure(std::int64_t round) const;

  // A round, after its label has come.
  struct Round {
    std::int64_t number = 0;
    double label = 0.0;
    double prediction = 0.0;
    std::span<const double> row;      // with clipped outliers
    std::span<const double> past;     // features of the past
    std::span<const double> changes;  // of the ridge regression by each feature of the source row; empty without one
    std::optional<std::size_t> measured;  // group
    double measured_prediction = 0.0;
  };

  // Adds a round. Does not throw.
  void add(const Round& round);

 private:
  std::vector<FeatureGroup>::const_iterator rarest_group() const;
  double fraction(const FeatureGroup& group, double sum) const;
  void add_measurement(FeatureGroup& measured, const Round& round, double control);
  void add_row(const Round& round);

  ImportanceParts parts_;
};

}  // namespace ellipack
