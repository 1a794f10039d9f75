// Rounds of a learner with a metric: clip and project the row, find neighbors, compute the predictions of the experts,
// aggregate them, learn the label.
//
// It owns all state that changes within a phase, and does not lock: see MetricCore.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "aggregation.hpp"
#include "center_index.hpp"
#include "center_memory.hpp"
#include "conformal.hpp"
#include "feature_views.hpp"
#include "local_models.hpp"
#include "packing_core.hpp"
#include "stacked_aggregation.hpp"
#include "surrogates.hpp"

namespace ellipack {

struct MetricSettings {
  static constexpr std::size_t max_neighbors = 512;  // the cost of kriging is cubic

  std::size_t neighbors;  // number of neighbors for kriging
  // Number of centers at which a quarter of them is evicted; there are always fewer. Python evicts: `learn` stops
  // before it has this many, or the learner that sees the past has `past_max_centers`.
  std::size_t max_centers;
  double label_margin;  // predictions may exceed the range of the labels by this fraction of it

  // The same number for the learner that sees the past. It evicts a little earlier, so that a round
  // usually does not wait for both.
  std::size_t past_max_centers() const { return max_centers - 2; }
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

// The complete state of MetricRounds.
struct MetricParts {
  std::vector<FeatureView> views;
  CenterMemory centers;
  CenterIndex index;  // of the centers
  PackingExpert packing;
  GlobalRegressions regressions;
  StackedAggregation aggregation;
  LabelStatistics labels;
  FeatureStatistics features;
  ConformalIntervals intervals;
  std::int64_t clock = 0;

  // Throws std::invalid_argument unless the parts are valid and consistent.
  void check() const;
};

class MetricRounds {
 public:
  static constexpr std::size_t global_experts = 4;

  // For larger values, sums of squared features and of fourth powers of labels could overflow.
  static constexpr double largest_feature = 1e140;
  static constexpr double largest_label = 1e60;

  struct Workspace;

  // Throws std::invalid_argument unless the settings and the parts are valid.
  MetricRounds(const MetricSettings& settings, MetricParts parts);

  std::size_t dimension() const { return parts_.centers.dimension(); }
  const MetricSettings& settings() const { return settings_; }
  std::int64_t clock() const { return parts_.clock; }
  std::size_t size() const { return parts_.centers.size(); }  // number of centers

  // Returns the weights of the experts in the aggregation; they add up to 1.
  std::vector<double> expert_weights() const;

  // Returns the scale of each feature in the first view.
  std::span<const double> feature_scales() const { return parts_.views[0].scale; }

  const MetricParts& parts() const { return parts_; }

  // Moves all parts out. No other call may follow.
  MetricParts release_parts() { return std::move(parts_); }

  // Returns the range of the labels, extended by `label_margin`.
  PredictionRange prediction_range() const;

  // Returns the prediction for a row; 0 before the first label. Reuses the results of an earlier prediction for the
  // same row in the same round.
  double predict_row(std::span<const double> row, Workspace& work) const;

  // A prediction that was made before its label, with its intervals.
  struct Published {
    double prediction;
    double relative_scale;
    ConformalIntervals::Bounds bounds;
  };

  // Returns a prediction with its intervals, for the relative scale of its row.
  Published publish(double prediction, double relative_scale) const {
    return {prediction, relative_scale, parts_.intervals.around(prediction, relative_scale)};
  }

  // Computes the gradients of the local fits at the row that was predicted last, unless they are known.
  void find_gradients(Workspace& work) const;

  // Returns the gradient in the first view, by standardized features. It is 0 before the first label.
  static std::span<const double> gradient(const Workspace& work);

  // Computes the slopes of the surrogates at the row that was predicted last, of which the gradients are known. The
  // model has the slopes of the quadratic function as linear functions of the standardized row: a symmetric matrix of
  // coefficients, then the intercepts. It may be empty, and must outlive the surrogates.
  void find_slopes(std::span<const double> model, const Workspace& work, Surrogates& surrogates) const;

  // Computes the gaps of the surrogates from the row that was predicted last to another one.
  void find_gaps(std::span<const double> other, const Workspace& work, std::span<double> gaps) const;

  // Returns whether learning the label of the row that was predicted last would bring the number of centers to
  // `max_centers`.
  bool fills_memory(double label, const Workspace& work) const;

  // Allocates what learning the label of the row that was predicted last needs. If it throws, nothing has changed.
  void make_room_to_learn(double label, const Workspace& work);

  // Releases the inverses of the global regressions, which are then no longer updated. Before the last round of a
  // phase after which they are fitted again, this saves a copy of them.
  void release_inverses();

  // Learns the label of the row that was predicted last, after `make_room_to_learn`. Does not throw. An outlier is only
  // counted. The intervals are those of the published prediction.
  void learn_row(double label, const Published& published, Workspace& work);

  // The same for `store_row`.
  bool fills_memory(double label) const;

  // The same as `make_room_to_learn` for a row to store.
  void make_room_to_store(std::span<const double> row, double label, Workspace& work);

  // Adds the row of `make_room_to_store` and its label to the centers, without a prediction. Does not throw. Only
  // experts that use neighbors learn from it.
  void store_row(double label, const Published& published, Workspace& work);

  bool has_labels() const { return parts_.labels.count > 0.0; }
  bool is_label_outlier(double label) const;

 private:
  // Steps of a prediction, in this order.
  void project_on_views(std::span<const double> row, Workspace& work) const;
  void find_packing_center(Workspace& work) const;
  void predict_globally(Workspace& work) const;
  void find_neighbors(std::size_t v, Workspace& work) const;
  void fill_trends(std::size_t v, Workspace& work) const;
  static std::span<double> local_predictions(std::size_t v, Workspace& work);
  double local_scale(const Workspace& work) const;

  static std::size_t nearest_center(const Workspace& work);
  bool is_duplicate(const Workspace& work) const;
  bool adds_packing_center(const Workspace& work);
  void make_room_for_center(const Workspace& work);
  bool count_outlier(double label);

  void fill_trends_from_offsets(Workspace& work) const;
  void fill_trends_from_rows(std::size_t v, Workspace& work) const;
  void update_gops(Workspace& work);
  void update_regressions(double label, Workspace& work);
  void update_packing(double label, Workspace& work);
  void update_centers(double label, double error, Workspace& work);
  void add_center(double label, double error, const Workspace& work);
  void update_statistics(double label, const Workspace& work);

  MetricSettings settings_;
  MetricParts parts_;
  RadiusSchedule radius_;
  std::vector<double> direction_squares_;  // squared norms of the directions of the first view
};

// Buffers of a round. A prediction leaves its results here, so that learning the same row can reuse them.
struct MetricRounds::Workspace {
  // For another prediction in the same round, a workspace shares the buffers of the local models with the first one.
  // They keep no results, and are in the cache.
  explicit Workspace(const MetricRounds& rounds, const Workspace* first = nullptr);

  // Buffers for one view.
  struct View {
    View(const FeatureView& view, std::size_t kriged, std::shared_ptr<LocalModels> buffers);
    std::vector<double> coordinates;
    std::vector<Neighbor> neighbors;
    Neighborhood near;
    std::shared_ptr<LocalModels> models;
    std::vector<double> slope;
    std::vector<double> gradient;  // by standardized features
    std::vector<double> slope_buffer;
    std::vector<double> trend_slopes;  // slopes of both regressions along the coordinates
  };

  std::int64_t clock = -1;     // round of the stored prediction; -1 if there is none
  bool has_gradients = false;  // of the local fits at its row
  std::vector<double> row;
  std::vector<double> clipped;
  std::vector<double> standard;  // standardized row and the constant 1
  std::vector<View> views;
  std::vector<double> packing_point;
  Neighbor packing_center;
  std::vector<double> predictions;  // predictions of the experts
  StackedAggregation::Workspace aggregation;
  double relative_scale = 1.0;  // error to expect, in units of the mean error
  std::vector<double> buffer;
};

}  // namespace ellipack
