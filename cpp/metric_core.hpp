// The compiled core of MetricRegressor: a learner that sees the features alone and, if wanted, one that also sees
// summaries of earlier labels (the past), whose predictions are combined.
//
// The core owns all state that changes within a phase. Between phases, Python builds a new core from the parts of the
// old one. Locks make it safe to predict from many threads while one learns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "column_importance.hpp"
#include "fair_shared_mutex.hpp"
#include "metric_rounds.hpp"
#include "past_features.hpp"
#include "prediction_output.hpp"
#include "stacked_aggregation.hpp"

namespace ellipack {

// Sums of squared errors of the predictions without and with the past.
struct SquaredErrors {
  std::int64_t rounds = 0;
  double without_past = 0.0;
  double with_past = 0.0;

  void add(double label, double without, double with);
};

// The state of the learner that sees the past.
struct PastParts {
  MetricParts rounds;  // its features are those of PastFeatures, followed by those of the row unless these are many
  PastFeatures features;
  StackedAggregation combination;  // of the predictions without and with the past
  std::int64_t active_from = 0;    // round of the phase after which the past is used; before, rows are only stored
  SquaredErrors active_errors;     // in the rounds of this phase that used the past
  SquaredErrors total_errors;      // in all rounds

  // Throws std::invalid_argument unless the parts are valid, consistent and belong to a learner with `dimension`
  // features after `clock` rounds.
  void check(std::size_t dimension, std::int64_t clock) const;
};

// The complete state of a core.
struct CoreParts {
  MetricParts plain;  // of the learner that sees the features alone
  std::optional<PastParts> past;
  std::optional<ImportanceParts> importance;  // of the columns, if it is measured

  // Throws std::invalid_argument unless the parts are consistent. A core also checks each of them.
  void check() const;
};

class MetricCore {
 public:
  // Largest feature of the past in size: a label, a mean of labels, or the difference of a label and a prediction.
  static constexpr double largest_past = 1e61;

  // Throws std::invalid_argument unless the settings and the parts are valid.
  MetricCore(const MetricSettings& settings, CoreParts parts);

  // Copies the state between two rounds of the other core.
  MetricCore(const MetricCore& other);
  MetricCore& operator=(const MetricCore&) = delete;

  std::size_t dimension() const { return plain_.dimension(); }
  const MetricSettings& settings() const { return plain_.settings(); }
  bool has_past() const { return past_ != nullptr; }
  std::size_t past_labels() const { return past_ ? past_->features.settings().labels : 0; }
  bool has_keys() const { return past_ && past_->features.has_keys(); }
  std::int64_t clock() const;
  std::size_t size() const;  // number of centers of the learner that sees the features alone

  // Returns the weights of the experts that see the features alone; they add up to 1.
  std::vector<double> expert_weights() const;

  // Returns the scale of each feature in the first view.
  std::span<const double> feature_scales() const { return plain_.feature_scales(); }

  // Return the same for the learner that sees the past, and the sums of its squared errors in all rounds. Throw
  // std::invalid_argument if there is none.
  std::span<const double> past_feature_scales() const;
  SquaredErrors past_errors() const;

  // Returns a copy of all parts between two rounds. It shares the index of the centers until either changes it.
  CoreParts parts() const;

  // Return whether all values are finite and not too large.
  static bool accepts_rows(std::span<const double> rows);
  static bool accepts_labels(std::span<const double> labels);

  // Predicts rows from the features alone, on at most `threads` threads, all from the same state. Other threads may
  // predict at the same time, and one may learn.
  void predict(std::span<const double> rows, const PredictionOutput& output, std::size_t threads = 1) const;

  // Predictions of the experts for a row from the features alone; all 0 before the first label.
  struct ExpertPredictions {
    std::vector<double> experts;
    std::array<double, 2> mean_and_stacked;  // predictions of the aggregation and of the stack
  };
  ExpertPredictions expert_predictions(std::span<const double> row) const;

  // Predicts the rows that follow, one after the other, without learning them. `features` holds the past before the
  // first of them, and is updated by the labels; if it is null, the past of the core is used. A NaN is an unknown
  // label, for which the prediction stands in. `keys` has one entry per row if rows have keys. The interval of a row
  // that follows an unknown label is at least as wide as that of `predict`; `follows_unknown` tells whether the first
  // row does.
  void predict_next(std::span<const double> rows, std::span<const std::int64_t> keys, std::span<const double> labels,
                    PastFeatures* features, const PredictionOutput& output, bool follows_unknown) const;

  // Returns a copy of the past. Throws std::invalid_argument if the core does not see it.
  PastFeatures past_features() const;

  // The prediction of the row that follows, and the features of the past that it used, for a label that comes late.
  struct NextPrediction {
    MetricRounds::Published published;
    std::vector<double> past;
  };
  NextPrediction predict_next_row(std::span<const double> row, std::int64_t key) const;

  // Rows with their labels and, if rows have keys, their keys; the rows to learn are `count` of them from `first` on.
  struct Batch {
    std::span<const double> rows;
    std::span<const std::int64_t> keys;
    std::span<const double> labels;
    std::size_t first;
    std::size_t count;
  };

  // Runs one round for each row of a batch to learn, and fills in its prediction, made before its label was learned. It
  // stops before the round `phase_end`, and before a round that would bring the number of centers to `max_centers`.
  // Returns the number of rounds run. Unless `plain` is empty, it also gets the predictions from the features alone.
  // Both outputs have an entry for each row of the batch.
  std::size_t learn(const Batch& batch, std::int64_t phase_end, const PredictionOutput& output,
                    const PredictionOutput& plain);

  // A row to learn. If its label comes late, `past` has the features of the past at the time of its prediction, and
  // `bounds` the intervals that were published then; otherwise both are empty.
  struct Row {
    std::span<const double> features;
    std::int64_t key = 0;
    std::span<const double> past;
    std::span<const double> bounds;
  };

  // Runs one round. Returns false, without a change, if it would bring the number of centers to `max_centers`.
  bool learn_row(const Row& row, double label);

  // Returns the parts after one more round, and what it published, without changing this core. Used for rounds after
  // which centers are evicted or the phase ends.
  std::pair<CoreParts, MetricRounds::Published> round_on_copy(const Row& row, double label) const;

  // The same, but the global regressions of the parts are empty: they must be fitted again.
  std::pair<CoreParts, MetricRounds::Published> round_before_refit(const Row& row, double label) const;

 private:
  // The learner that sees the past.
  struct Past {
    explicit Past(const MetricSettings& settings, PastParts parts);

    MetricRounds rounds;
    PastFeatures features;
    StackedAggregation combination;
    std::int64_t active_from;
    SquaredErrors active_errors;
    SquaredErrors total_errors;

    bool is_active() const { return rounds.clock() >= active_from; }
  };

  struct PastWorkspace {
    PastWorkspace(const Past& past, const MetricRounds::Workspace* first);
    std::vector<double> row;              // features of the past, and those of the row unless these are many
    std::array<double, 2> predictions{};  // without and with the past
    MetricRounds::Workspace rounds;
    StackedAggregation::Workspace combination;
  };

  struct ImportanceWorkspace;

  struct Workspace {
    // See MetricRounds::Workspace.
    explicit Workspace(const MetricCore& core, const Workspace* first = nullptr);
    MetricRounds::Workspace plain;
    std::unique_ptr<PastWorkspace> past;              // null without the past
    std::unique_ptr<ImportanceWorkspace> importance;  // null before importance is measured
    double prediction = 0.0;
  };

  // What a round measures about the importance of columns before its label comes.
  struct ImportanceWorkspace {
    ImportanceWorkspace(const MetricCore& core, const Workspace& usual)
        : row(core.dimension()),
          past(core.importance_->parts().past_dimension),
          surrogates(core.dimension()),
          expected_rises(core.importance_->parts().groups.size()),
          replaced(core, &usual) {}
    std::vector<double> row;   // with the features of a group from an earlier row
    std::vector<double> past;  // features of the past
    Surrogates surrogates;
    std::vector<ColumnImportance::ExpectedRise> expected_rises;  // of the groups, if there is an earlier row
    std::optional<ColumnImportance::Choice> choice;              // that was measured
    Workspace replaced;                                          // with the prediction for `row`
  };

  void predict_rows(std::span<const double> rows, const PredictionOutput& output, std::size_t first,
                    std::size_t last) const;

  // Steps of a round. The caller holds the lock.
  double predict_round(const Row& row, const PastFeatures* features, Workspace& work) const;
  MetricRounds::Published publish_plain(const Workspace& work) const;
  MetricRounds::Published publish_next(const Workspace& work) const;
  void append_features(std::span<const double> row, PastWorkspace& past) const;
  void combine(double with_past, Workspace& work) const;
  bool fills_memory(double label, const Workspace& work) const;
  void make_room(const Row& row, double label, Workspace& work);
  MetricRounds::Published learn_round(const Row& row, double label, Workspace& work);
  std::pair<CoreParts, MetricRounds::Published> last_round(const Row& row, double label);
  void learn_past(const Row& row, double label, const MetricRounds::Published& published, Workspace& work);

  // Measurement of the importance of columns: before and after the label comes.
  void measure_importance(std::span<const double> row, double label, Workspace& work) const;
  void predict_replaced(std::size_t source, const FeatureGroup& group, ImportanceWorkspace& measured) const;
  void add_importance(double label, const Workspace& work);

  const PastFeatures* own_past() const { return past_ ? &past_->features : nullptr; }
  void check_row(const Row& row, double label) const;
  CoreParts release_parts();

  std::unique_ptr<Workspace> acquire_workspace() const;
  void release_workspace(std::unique_ptr<Workspace> work) const;

  explicit MetricCore(const MetricCore& other, const std::shared_lock<FairSharedMutex>& lock);

  mutable FairSharedMutex mutex_;  // guards the next three members
  MetricRounds plain_;
  std::unique_ptr<Past> past_;                    // null without the past
  std::unique_ptr<ColumnImportance> importance_;  // null if it is not measured
  mutable std::mutex workspaces_mutex_;           // guards the members below
  mutable std::size_t created_workspaces_ = 0;    // for each of which there is room in `free_workspaces_`
  mutable std::vector<std::unique_ptr<Workspace>> free_workspaces_;
};

}  // namespace ellipack
