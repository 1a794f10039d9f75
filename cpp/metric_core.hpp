// The practical learner's rounds: see the row, find its neighbors, ask the experts, aggregate, observe the label,
// update.
//
// The core owns everything that changes from round to round. Python decides what happens between phases: it builds a
// new core from the parts of the old one.
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
  static constexpr std::size_t max_neighbors = 512;  // the cost of kriging grows with their cube

  std::size_t neighbors;    // that kriging uses
  std::size_t max_centers;  // `learn` stops before there are so many
  double label_margin;      // how far beyond the labels seen a prediction may go, relative to their range
};

// The centers that all views share. A center is a row, or several rows that have the same coordinates in the first
// view.
struct CenterMemory {
  static constexpr double largest_row = 1e150;  // whose sums and differences are finite

  std::size_t dimension = 0;
  CopyOnWrite<std::vector<double>> rows;  // mean rows
  std::vector<double> label_sums;
  std::vector<std::int64_t> label_counts;
  std::vector<double> round_sums;  // of the rounds in which the labels came

  std::size_t size() const { return label_sums.size(); }
  std::span<const double> row(std::size_t center) const { return {rows->data() + center * dimension, dimension}; }
  double mean_label(std::size_t center) const { return label_sums[center] / static_cast<double>(label_counts[center]); }

  // Throws std::invalid_argument unless there is an entry for each center and all are possible.
  void check() const;

  void add(std::span<const double> row, double label, std::int64_t round);
  void merge(std::size_t center, std::span<const double> row, double label, std::int64_t round);
};

// Algorithm 1 as an expert, in the coordinates of the first view divided by `coordinate_scale`.
struct PackingExpert {
  static constexpr double min_coordinate_scale = 1e-200;  // coordinates divided by it are finite

  PackingCenters centers;
  std::vector<std::int64_t> rank_starts;
  std::int64_t clock;       // its rounds
  double coordinate_scale;  // largest norm of the centers at the start of the phase
  std::size_t max_centers;

  // Throws std::invalid_argument unless `clock` rounds can lead here.
  void check() const;
};

// The regressions on all features in the first view's standard units, and a constant.
struct GlobalRegressions {
  LeastSquares ridge;
  LeastSquares forgetting;  // the same, with the past discounted
};

// How experts become one prediction: an aggregation, a stack on top of it, and an aggregation of both.
struct ExpertAggregation {
  BernsteinAggregation experts;
  LeastSquares stack;
  BernsteinAggregation top;
};

// Everything that the core carries from round to round.
struct MetricParts {
  static constexpr double largest_coordinate = 1e100;

  std::vector<FeatureView> views;
  CenterMemory centers;
  std::vector<std::vector<double>> coordinates;  // of the centers in each view
  PackingExpert packing;
  GlobalRegressions regressions;
  ExpertAggregation aggregation;
  LabelStatistics labels;
  FeatureStatistics features;
  std::int64_t clock = 0;

  // Throws std::invalid_argument unless the parts are sound and fit together.
  void check() const;
};

class MetricCore {
 public:
  static constexpr std::size_t global_experts = 4;

  // Beyond these, sums of squares of features and of fourth powers of labels would overflow.
  static constexpr double largest_feature = 1e140;
  static constexpr double largest_label = 1e60;

  // Throws std::invalid_argument unless the parts fit together.
  MetricCore(const MetricSettings& settings, MetricParts parts);

  // A copy between two rounds.
  MetricCore(const MetricCore& other);
  MetricCore& operator=(const MetricCore&) = delete;

  std::size_t dimension() const { return parts_.centers.dimension; }
  const MetricSettings& settings() const { return settings_; }
  std::int64_t clock() const;
  std::size_t size() const;  // centers

  // The weights of the experts in the aggregation; they add up to 1.
  std::vector<double> expert_weights() const;

  // The scale of each feature in the first view.
  std::span<const double> feature_scales() const { return parts_.views[0].scale; }

  // A copy of all parts, between two rounds.
  MetricParts parts() const;

  // Whether all rows, and all labels, are finite and not too large.
  static bool accepts_rows(std::span<const double> rows);
  static bool accepts_labels(std::span<const double> labels);

  // Predicts rows on at most so many threads, all in the same state; changes nothing. Others may predict at the same
  // time, and one may learn.
  void predict(std::span<const double> rows, std::span<double> predictions, std::size_t threads = 1) const;

  // What the experts predict for a row, and what becomes of it: the aggregation and the stack. All 0 before the first
  // label.
  struct ExpertPredictions {
    std::vector<double> experts;
    std::array<double, 2> combined;
  };
  ExpertPredictions expert_predictions(std::span<const double> row) const;

  // Plays one round a row and fills in the predictions, each made before its label was seen. Returns how many rounds
  // were played: it stops before a round that would bring the number of centers to `max_centers`.
  std::size_t learn(std::span<const double> rows, std::span<const double> labels, std::span<double> predictions);

  // What the parts would be after one more round, and its prediction. It is for rounds after which centers are evicted
  // or the phase ends; `learn` plays all others.
  std::pair<MetricParts, double> simulate_round(std::span<const double> row, double label) const;

 private:
  // What the rounds of one view work with.
  struct ViewWorkspace {
    ViewWorkspace(const FeatureView& view, std::size_t neighbors);
    std::vector<double> coordinates;
    std::vector<Neighbor> neighbors;
    Neighborhood near;
    LocalModels models;
    std::vector<double> slope;
    std::vector<double> trend_slopes;  // of both regressions along the coordinates
  };

  // What a round works with, and what a prediction leaves for learning the same row.
  struct Workspace {
    explicit Workspace(const MetricCore& core);
    std::int64_t clock = -1;  // the round whose prediction is here; -1: none
    std::vector<double> row;
    std::vector<double> clipped;
    std::vector<double> standard;  // and the constant 1
    std::vector<ViewWorkspace> views;
    std::vector<double> packing_point;
    Neighbor packing_center;
    std::vector<double> predictions;  // of the experts
    std::vector<double> weights;
    std::vector<double> deviations;    // of the experts from their aggregation
    std::array<double, 2> combined{};  // the aggregation and the stack
    std::array<double, 2> combined_weights{};
    double prediction = 0.0;
    std::vector<double> buffer;
  };

  void predict_rows(std::span<const double> rows, std::span<double> predictions, std::size_t first,
                    std::size_t last) const;

  // The order of a round.
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
  void update_regressions(double label, Workspace& work);
  void update_packing(double label, Workspace& work);
  void update_centers(double label, Workspace& work);
  double clip_to_label_range(double value) const;

  std::unique_ptr<Workspace> acquire_workspace() const;
  void release_workspace(std::unique_ptr<Workspace> work) const;

  explicit MetricCore(const MetricCore& other, const std::shared_lock<FairSharedMutex>& lock);

  MetricSettings settings_;
  mutable FairSharedMutex mutex_;  // of the next four
  MetricParts parts_;
  std::vector<KdTree> trees_;  // the centers in each view
  RadiusSchedule radius_;
  std::vector<double> direction_squares_;  // squared lengths of the first view's directions
  mutable std::mutex workspaces_mutex_;
  mutable std::vector<std::unique_ptr<Workspace>> free_workspaces_;
};

}  // namespace ellipack
