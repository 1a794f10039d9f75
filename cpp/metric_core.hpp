// The rounds of MetricRegressor: clip and project the row, find neighbors, compute the predictions of the experts,
// aggregate them, learn the label.
//
// The core owns all state that changes within a phase. Between phases, Python builds a new core from the parts of the
// old one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <vector>

#include "aggregation.hpp"
#include "copy_on_write.hpp"
#include "fair_shared_mutex.hpp"
#include "feature_views.hpp"
#include "kd_tree.hpp"
#include "local_models.hpp"
#include "packing_core.hpp"

namespace ellipack {

struct MetricSettings {
  static constexpr std::size_t max_neighbors = 512;  // the cost of kriging is cubic

  std::size_t neighbors;  // number of neighbors for kriging
  // Number of centers at which a quarter of them is evicted; there are always fewer. Python evicts: `learn` stops
  // before it has this many.
  std::size_t max_centers;
  double label_margin;  // predictions may exceed the range of the labels by this fraction of it
};

// The centers, shared by all views. A center is a row, or several rows that have the same coordinates in the first
// view.
struct CenterMemory {
  static constexpr double largest_row = 1e150;  // sums and differences of such rows are finite

  std::size_t dimension = 0;
  CopyOnWrite<std::vector<double>> rows;  // mean row of each center
  std::vector<double> label_sums;
  std::vector<std::int64_t> label_counts;
  std::vector<double> round_sums;  // sum of the rounds in which the labels were learned

  std::size_t size() const { return label_sums.size(); }
  std::span<const double> row(std::size_t center) const { return {rows->data() + center * dimension, dimension}; }
  double mean_label(std::size_t center) const { return label_sums[center] / static_cast<double>(label_counts[center]); }

  // Throws std::invalid_argument unless all arrays have one entry per center and all values are in range.
  void check() const;

  // Adds a center.
  void add(std::span<const double> row, double label, std::int64_t round);
  // Merges a row and its label with a center.
  void merge(std::size_t center, std::span<const double> row, double label, std::int64_t round);
};

// Algorithm 1 as an expert, in the coordinates of the first view divided by `coordinate_scale`.
struct PackingExpert {
  static constexpr double min_coordinate_scale = 1e-200;  // coordinates divided by it are finite

  PackingCenters centers;
  std::vector<std::int64_t> rank_starts;
  std::int64_t clock;       // number of rounds of Algorithm 1
  double coordinate_scale;  // largest norm of the centers at the start of the phase
  std::size_t max_centers;

  // Throws std::invalid_argument unless the values are a possible state after `clock` rounds.
  void check() const;
};

// Ridge regressions on the standardized features of the first view and a constant.
struct GlobalRegressions {
  LeastSquares ridge;
  LeastSquares forgetting;  // the same with forgetting
};

// Aggregation of the experts, a stack that corrects it, and a top aggregation of both.
struct ExpertAggregation {
  BernsteinAggregation experts;
  LeastSquares stack;
  BernsteinAggregation top;
};

// The complete state of a core.
struct MetricParts {
  static constexpr double largest_coordinate = 1e100;

  std::vector<FeatureView> views;
  CenterMemory centers;
  std::vector<std::vector<double>> coordinates;  // coordinates of the centers in each view
  PackingExpert packing;
  GlobalRegressions regressions;
  ExpertAggregation aggregation;
  LabelStatistics labels;
  FeatureStatistics features;
  std::int64_t clock = 0;

  // Throws std::invalid_argument unless the parts are valid and consistent.
  void check() const;
};

class MetricCore {
 public:
  static constexpr std::size_t global_experts = 4;

  // For larger values, sums of squared features and of fourth powers of labels could overflow.
  static constexpr double largest_feature = 1e140;
  static constexpr double largest_label = 1e60;

  // Throws std::invalid_argument unless the settings and the parts are valid.
  MetricCore(const MetricSettings& settings, MetricParts parts);

  // Copies the state between two rounds of the other core.
  MetricCore(const MetricCore& other);
  MetricCore& operator=(const MetricCore&) = delete;

  std::size_t dimension() const { return parts_.centers.dimension; }
  const MetricSettings& settings() const { return settings_; }
  std::int64_t clock() const;
  std::size_t size() const;  // number of centers

  // Returns the weights of the experts in the aggregation; they add up to 1.
  std::vector<double> expert_weights() const;

  // Returns the scale of each feature in the first view.
  std::span<const double> feature_scales() const { return parts_.views[0].scale; }

  // Returns a copy of all parts between two rounds.
  MetricParts parts() const;

  // Return whether all values are finite and not too large.
  static bool accepts_rows(std::span<const double> rows);
  static bool accepts_labels(std::span<const double> labels);

  // Predicts rows on at most `threads` threads, all from the same state. Other threads may predict at the same time,
  // and one may learn.
  void predict(std::span<const double> rows, std::span<double> predictions, std::size_t threads = 1) const;

  // Predictions for a row; all 0 before the first label.
  struct ExpertPredictions {
    std::vector<double> experts;
    std::array<double, 2> mean_and_stacked;  // predictions of the aggregation and of the stack
  };
  ExpertPredictions expert_predictions(std::span<const double> row) const;

  // Runs one round per row and fills in the predictions, each made before its label was learned. Returns the number of
  // rounds run. It stops before a round that would bring the number of centers to `max_centers`.
  std::size_t learn(std::span<const double> rows, std::span<const double> labels, std::span<double> predictions);

  // Returns the parts after one more round, and its prediction, without changing this core. Used for rounds after which
  // centers are evicted or the phase ends.
  std::pair<MetricParts, double> round_on_copy(std::span<const double> row, double label) const;

 private:
  // Buffers of a round for one view.
  struct ViewWorkspace {
    ViewWorkspace(const FeatureView& view, std::size_t neighbors);
    std::vector<double> coordinates;
    std::vector<Neighbor> neighbors;
    Neighborhood near;
    LocalModels models;
    std::vector<double> slope;
    std::vector<double> trend_slopes;  // slopes of both regressions along the coordinates
  };

  // Buffers of a round. A prediction leaves its results here, so that learning the same row can reuse them.
  struct Workspace {
    explicit Workspace(const MetricCore& core);
    std::int64_t clock = -1;  // round of the stored prediction; -1 if there is none
    std::vector<double> row;
    std::vector<double> clipped;
    std::vector<double> standard;  // standardized row and the constant 1
    std::vector<ViewWorkspace> views;
    std::vector<double> packing_point;
    Neighbor packing_center;
    std::vector<double> predictions;  // predictions of the experts
    std::vector<double> weights;
    std::vector<double> deviations;            // deviations of the experts from the aggregation
    std::array<double, 2> mean_and_stacked{};  // predictions of the aggregation and of the stack
    std::array<double, 2> top_weights{};       // weights of these in the top aggregation
    double prediction = 0.0;
    std::vector<double> buffer;
  };

  void predict_rows(std::span<const double> rows, std::span<double> predictions, std::size_t first,
                    std::size_t last) const;

  // Steps of a round, in this order.
  double predict_row(std::span<const double> row, Workspace& work) const;
  void see_row(std::span<const double> row, Workspace& work) const;
  void ask_global_experts(Workspace& work) const;
  void ask_local_experts(std::size_t v, Workspace& work) const;
  double aggregate(Workspace& work) const;
  void learn_row(double label, Workspace& work);

  bool is_label_outlier(double label) const;
  bool fills_memory(double label, const Workspace& work) const;
  bool is_duplicate(const Workspace& work) const;

  void find_neighbors(std::size_t v, Workspace& work) const;
  void fill_trends_from_offsets(ViewWorkspace& view) const;
  void fill_trends_from_rows(std::size_t v, Workspace& work) const;
  void update_aggregation(double label, Workspace& work);
  void update_gops(Workspace& work);
  void update_regressions(double label, Workspace& work);
  void update_packing(double label, Workspace& work);
  void update_centers(double label, Workspace& work);
  double clip_to_label_range(double value) const;

  std::unique_ptr<Workspace> acquire_workspace() const;
  void release_workspace(std::unique_ptr<Workspace> work) const;

  explicit MetricCore(const MetricCore& other, const std::shared_lock<FairSharedMutex>& lock);

  MetricSettings settings_;
  mutable FairSharedMutex mutex_;  // guards the next four members
  MetricParts parts_;
  std::vector<KdTree> trees_;  // index of the centers in each view
  RadiusSchedule radius_;
  std::vector<double> direction_squares_;  // squared norms of the directions of the first view
  mutable std::mutex workspaces_mutex_;
  mutable std::vector<std::unique_ptr<Workspace>> free_workspaces_;
};

}  // namespace ellipack
