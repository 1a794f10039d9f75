// Importance of columns, measured by what they do to the error.
//
// At some rounds, a row is predicted once more with the features of one group taken from an earlier row. The rise in
// squared error is added to the sums of the group. Rounds and groups are drawn at random, more often where the rise is
// likely to be large; a measurement weighs as much as it was unlikely (probability proportional to size). At all rounds
// and for all groups, cheap surrogates of the prediction give rises, too: the controls. A regression of the measured
// rises on the controls, taken at the mean of the controls over all rounds, estimates the mean rise with a much smaller
// variance (control variates).
//
// If both rows have the same values, the rise is 0 and nothing has to be measured. All sums are over the other rounds;
// the mean rise over all rounds is the one over these, times their fraction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rise_estimates.hpp"
#include "row_blocks.hpp"
#include "stacked_aggregation.hpp"
#include "surrogates.hpp"

namespace ellipack {

// Features that are replaced together.
struct FeatureGroup {
  std::vector<std::int64_t> features;
  bool uses_past = false;  // whether the features of the past are replaced, too
  double priority = 1.0;   // of its standard error, when measurements are divided among groups
  std::int64_t count = 0;  // number of measurements
  double fraction = 0.0;   // of the measurements that it gets; if all are 0, those with few get most
  DiscountedMean change;   // of the surrogates, in rounds with different values
  DiscountedMean size;     // of what a measurement is likely to give, in the same rounds
  GroupSums total;
  GroupSums recent;
};

// The complete state.
struct ImportanceParts {
  static constexpr std::size_t max_rows = max_sources;
  static constexpr std::int64_t first_round = 16;  // before, predictions are too poor to measure

  std::int64_t seed = 0;
  std::size_t dimension = 0;       // number of features
  std::size_t past_dimension = 0;  // number of features of the past
  std::vector<FeatureGroup> groups;
  std::int64_t seen = 0;            // number of rows so far
  RowBlocks sample;                 // uniform sample of them: a row, the slope of the local fit there, and its past
  std::vector<double> slope_model;  // see MetricRounds::find_slopes; of the current phase
  DiscountedMean total_error;       // squared errors of all rounds
  DiscountedMean recent_error;
  double recent_factor = 1.0;  // by which the weights of recent measurements are still to be multiplied
  std::vector<double> last_row;
  std::vector<std::int64_t> increases;  // of each feature from a row to the next
  std::vector<std::int64_t> decreases;

  std::span<const double> row(std::size_t k) const { return sample[k].first(dimension); }
  std::span<const double> gradient(std::size_t k) const { return sample[k].subspan(dimension, dimension); }
  std::span<const double> past_row(std::size_t k) const { return sample[k].last(past_dimension); }

  // Throws std::invalid_argument unless the parts are valid and consistent.
  void check() const;
};

class ColumnImportance {
 public:
  // Throws std::invalid_argument unless the parts are valid.
  explicit ColumnImportance(ImportanceParts parts);

  const ImportanceParts& parts() const { return parts_; }

  // Returns the number of the stored row that provides replacements in a round; there must be one.
  std::size_t source_row(std::int64_t round) const;

  // What a round is likely to give for a group: the rise of each surrogate, by how much they change on average, and
  // about how large the rise is. It decides whether the row is predicted once more, by a learner that has not seen the
  // label.
  struct ExpectedRise {
    bool differs = false;  // whether the earlier row has different values
    Controls controls{};
    double mean_change = 0.0;
    double size = 0.0;
  };
  struct Prediction {
    double value = 0.0;
    double label = 0.0;
    PredictionRange range{};
    std::span<const double> row;     // with clipped outliers
    std::span<const double> source;  // the earlier row
    const Surrogates& surrogates;    // with the gaps to it
  };
  // Finds the expected rises of all groups.
  void find_expected_rises(const Prediction& prediction, std::span<ExpectedRise> expected_rises) const;

  // Draws the group to measure in a round, given the expected rises of all; none in most rounds.
  struct Choice {
    std::size_t group = 0;
    double probability = 0.0;
  };
  std::optional<Choice> choose(std::int64_t round, std::span<const ExpectedRise> expected_rises) const;

  // A round, after its label has come.
  struct Round {
    std::int64_t number = 0;
    double label = 0.0;
    double prediction = 0.0;
    std::span<const double> row;                   // with clipped outliers
    std::span<const double> gradient;              // of the local fit at the row, by standardized features
    std::span<const double> scale;                 // of the standardized features
    std::span<const double> past;                  // features of the past
    std::span<const ExpectedRise> expected_rises;  // of all groups; none without an earlier row
    std::optional<Choice> choice;                  // that was measured
    double measured_prediction = 0.0;
  };

  // Allocates what `add` needs in a round, so that it does not throw.
  void make_room(std::int64_t round);

  // Adds a round, after `make_room`. Does not throw.
  void add(const Round& round);

 private:
  void find_expected_rise(const FeatureGroup& group, const Prediction& prediction, ExpectedRise& expected) const;
  void add_measurement(const Choice& choice, const Round& round);
  void divide_measurements();
  template <typename Deviation>
  void divide(double part, Deviation deviation);
  bool is_divided_again() const;
  void find_next_fractions();
  void add_row(const Round& round);
  std::uint64_t place_of_row(std::int64_t round) const;

  ImportanceParts parts_;
  std::vector<double> needs_;      // of each group, when measurements are divided among them
  std::vector<double> fractions_;  // of the next measurements that each group gets
};

}  // namespace ellipack
