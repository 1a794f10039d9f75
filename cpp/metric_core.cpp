#include "metric_core.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <future>
#include <limits>
#include <numeric>

#include "checks.hpp"
#include "projection.hpp"
#include "simd.hpp"

namespace ellipack {

namespace {

using simd::Double4;

// The memory of the regression with forgetting is an eighth of all rounds, but at least four rounds per coefficient of
// a local fit. It is discounted every fourth round, by four times as much, which is cheaper than every round.
constexpr double forgetting_divisor = 8.0;
constexpr double rounds_per_coefficient = 4.0;
constexpr double rounds_per_discount = 4.0;

constexpr std::size_t rows_per_thread = 16;  // for fewer rows, starting a thread takes longer than predicting

// Returns whether two rows are bitwise equal; 0 and -0 differ.
bool same_bits(std::span<const double> left, std::span<const double> right) {
  return std::memcmp(left.data(), right.data(), left.size_bytes()) == 0;
}

void check(const MetricSettings& settings) {
  require(settings.neighbors >= 2 && settings.neighbors <= MetricSettings::max_neighbors,
          "neighbors must be from 2 to 512");
  require(settings.label_margin >= 0.0 && std::isfinite(settings.label_margin), "label_margin must be finite and >= 0");
}

void check_labels(std::span<const double> labels) {
  require(MetricCore::accepts_labels(labels), "labels must be finite and at most 1e60 in size");
}

void check_rows(std::span<const double> rows, std::size_t count, std::size_t d) {
  require(rows.size() == count * d, "rows must have one entry per feature");
  require(MetricCore::accepts_rows(rows), "rows must be finite and at most 1e140 in size");
}

}  // namespace

void CenterMemory::check() const {
  require(dimension >= 1, "centers must have at least one feature");
  require(rows->size() == size() * dimension && label_counts.size() == size() && round_sums.size() == size(),
          "rows, label_counts and round_sums must have one entry per center");
  require(all_within(*rows, largest_row), "the rows of centers must be finite and at most 1e150 in size");
  require(all_finite(label_sums) && all_finite(round_sums), "label_sums and round_sums must be finite");
  require(all_counts(label_counts), "label_counts must be from 1 to 2^52");
}

void CenterMemory::add(std::span<const double> row, double label, std::int64_t round) {
  std::vector<double>& all = rows.write();
  all.insert(all.end(), row.begin(), row.end());
  label_sums.push_back(label);
  label_counts.push_back(1);
  round_sums.push_back(static_cast<double>(round));
}

void CenterMemory::merge(std::size_t center, std::span<const double> row, double label, std::int64_t round) {
  label_sums[center] += label;
  round_sums[center] += static_cast<double>(round);
  const auto count = static_cast<double>(++label_counts[center]);
  double* mean = rows.write().data() + center * dimension;
  for (std::size_t k = 0; k < dimension; ++k) {
    mean[k] += (row[k] - mean[k]) / count;
  }
}

void PackingExpert::check() const {
  const std::size_t rank = centers.points.dimension();
  require(rank_starts.size() + 1 == rank, "rank_starts must have one entry less than the number of coordinates");
  require(std::ranges::is_sorted(rank_starts), "rank_starts must be sorted");
  require(clock >= 0 && clock <= largest_count, "clock must be from 0 to 2^52");
  require(centers.creation_rounds.empty() || centers.creation_rounds.back() <= clock,
          "creation_rounds must be <= clock");
  require(all_counts(centers.label_counts), "label_counts must be from 1 to 2^52");
  require(coordinate_scale >= min_coordinate_scale && coordinate_scale <= 1.0 / min_coordinate_scale,
          "coordinate_scale must be from 1e-200 to 1e200");
}

void MetricParts::check() const {
  const std::size_t d = centers.dimension;
  centers.check();
  require(!views.empty(), "views must not be empty");
  for (const FeatureView& view : views) {
    view.check();
    require(view.dimension == d, "a view must have as many features as the centers");
  }
  require(views[0].knots.empty(), "the first view must have no knots");
  require(coordinates.size() == views.size(), "coordinates must have one array per view");
  for (std::size_t v = 0; v < views.size(); ++v) {
    require(coordinates[v].size() == centers.size() * views[v].rank && all_within(coordinates[v], largest_coordinate),
            "coordinates must be finite and at most 1e100 in size, with one row per center");
  }
  packing.check();
  require(packing.centers.points.dimension() == views[0].rank,
          "packing must have as many coordinates as the first view");
  require(clock >= 0 && clock <= largest_count, "clock must be from 0 to 2^52");
  for (const LeastSquares& regression : {std::cref(regressions.ridge), std::cref(regressions.forgetting)}) {
    regression.check();
    require(regression.size() == d + 1, "a regression must have one coefficient per feature and a constant");
  }
  aggregation.experts.check();
  aggregation.stack.check();
  aggregation.top.check();
  const std::size_t experts = MetricCore::global_experts + views.size() * LocalModels::experts;
  require(aggregation.experts.size() == experts && aggregation.stack.size() == experts,
          "the aggregation and the stack must have one entry per expert");
  require(aggregation.top.size() == 2, "the top aggregation must have two entries");
  labels.check();
  features.check();
  require(features.mean.size() == d, "the statistics of features must have one entry per feature");
  require((labels.count > 0.0) == (centers.size() > 0), "centers must exist if and only if labels were learned");
}

MetricCore::ViewWorkspace::ViewWorkspace(const FeatureView& view, std::size_t kriged)
    : coordinates(view.rank),
      neighbors(std::max(kriged, LocalModels::neighbors_of_fit(view.fit_dimension))),
      near(neighbors.size(), view.rank),
      models(kriged, view.fit_dimension, view.rank),
      slope(view.fit_dimension),
      trend_slopes(2 * view.rank) {}

MetricCore::Workspace::Workspace(const MetricCore& core)
    : row(core.dimension()),
      clipped(core.dimension()),
      standard(core.dimension() + 1),
      packing_point(core.parts_.views[0].rank),
      predictions(core.parts_.aggregation.experts.size()),
      weights(predictions.size()),
      deviations(predictions.size()),
      buffer(std::max(predictions.size(), core.dimension() + 1)) {
  for (const FeatureView& view : core.parts_.views) {
    views.emplace_back(view, core.settings_.neighbors);
  }
}

MetricCore::MetricCore(const MetricSettings& settings, MetricParts parts)
    : settings_((check(settings), settings)),
      parts_((parts.check(), std::move(parts))),
      radius_(parts_.packing.rank_starts) {
  for (std::size_t v = 0; v < parts_.views.size(); ++v) {
    const std::size_t rank = parts_.views[v].rank;
    trees_.push_back(parts_.centers.size() == 0 ? KdTree(rank) : KdTree(parts_.coordinates[v], rank));
  }
  parts_.coordinates.clear();
  const FeatureView& first = parts_.views[0];
  direction_squares_.assign(first.rank, 0.0);
  for (std::size_t i = 0; i < first.dimension; ++i) {
    for (std::size_t j = 0; j < first.rank; ++j) {
      direction_squares_[j] += first.directions[i * first.rank + j] * first.directions[i * first.rank + j];
    }
  }
}

MetricCore::MetricCore(const MetricCore& other) : MetricCore(other, std::shared_lock(other.mutex_)) {}

MetricCore::MetricCore(const MetricCore& other, const std::shared_lock<FairSharedMutex>& /*lock*/)
    : settings_(other.settings_),
      parts_(other.parts_),
      trees_(other.trees_),
      radius_(other.radius_),
      direction_squares_(other.direction_squares_) {}

std::int64_t MetricCore::clock() const {
  const std::shared_lock lock(mutex_);
  return parts_.clock;
}

std::size_t MetricCore::size() const {
  const std::shared_lock lock(mutex_);
  return parts_.centers.size();
}

std::vector<double> MetricCore::expert_weights() const {
  const std::shared_lock lock(mutex_);
  std::vector<double> weights(parts_.aggregation.experts.size());
  parts_.aggregation.experts.compute_weights(weights);
  return weights;
}

MetricParts MetricCore::parts() const {
  const std::shared_lock lock(mutex_);
  MetricParts copy = parts_;
  for (const KdTree& tree : trees_) {
    copy.coordinates.push_back(tree.points());
  }
  return copy;
}

bool MetricCore::accepts_rows(std::span<const double> rows) {
  return std::ranges::all_of(rows, [](double value) { return std::abs(value) <= largest_feature; });
}

bool MetricCore::accepts_labels(std::span<const double> labels) {
  return std::ranges::all_of(labels, [](double label) { return std::abs(label) <= largest_label; });
}

void MetricCore::predict(std::span<const double> rows, std::span<double> predictions, std::size_t threads) const {
  check_rows(rows, predictions.size(), dimension());
  const std::shared_lock lock(mutex_);
  const std::size_t count = predictions.size();
  const std::size_t parts = std::clamp<std::size_t>(count / rows_per_thread, 1, std::max<std::size_t>(threads, 1));
  std::vector<std::future<void>> others;
  for (std::size_t part = 1; part < parts; ++part) {
    others.push_back(std::async(std::launch::async, [this, rows, predictions, part, parts, count] {
      predict_rows(rows, predictions, count * part / parts, count * (part + 1) / parts);
    }));
  }
  predict_rows(rows, predictions, 0, count / parts);
  for (std::future<void>& other : others) {
    other.get();
  }
}

// Predicts rows `first` to `last`. The caller holds the lock.
void MetricCore::predict_rows(std::span<const double> rows, std::span<double> predictions, std::size_t first,
                              std::size_t last) const {
  std::unique_ptr<Workspace> work = acquire_workspace();
  for (std::size_t t = first; t < last; ++t) {
    predictions[t] = predict_row(rows.subspan(t * dimension(), dimension()), *work);
  }
  release_workspace(std::move(work));
}

MetricCore::ExpertPredictions MetricCore::expert_predictions(std::span<const double> row) const {
  check_rows(row, 1, dimension());
  const std::shared_lock lock(mutex_);
  std::unique_ptr<Workspace> work = acquire_workspace();
  predict_row(row, *work);
  ExpertPredictions predicted{work->predictions, work->mean_and_stacked};
  release_workspace(std::move(work));
  return predicted;
}

std::size_t MetricCore::learn(std::span<const double> rows, std::span<const double> labels,
                              std::span<double> predictions) {
  check_rows(rows, labels.size(), dimension());
  check_labels(labels);
  require(predictions.size() == labels.size(), "predictions must have one entry per label");
  const std::unique_lock lock(mutex_);
  std::unique_ptr<Workspace> work = acquire_workspace();
  std::size_t done = 0;
  for (; done < labels.size(); ++done) {
    const double prediction = predict_row(rows.subspan(done * dimension(), dimension()), *work);
    if (fills_memory(labels[done], *work)) {
      break;
    }
    predictions[done] = prediction;
    learn_row(labels[done], *work);
  }
  release_workspace(std::move(work));
  return done;
}

std::pair<MetricParts, double> MetricCore::round_on_copy(std::span<const double> row, double label) const {
  check_rows(row, 1, dimension());
  check_labels({&label, 1});
  MetricCore after(*this);
  Workspace work(after);
  const double prediction = after.predict_row(row, work);
  after.learn_row(label, work);
  for (const KdTree& tree : after.trees_) {
    after.parts_.coordinates.push_back(tree.points());
  }
  return {std::move(after.parts_), prediction};
}

// Returns the prediction for a row. Reuses the results of an earlier prediction for the same row in the same round.
double MetricCore::predict_row(std::span<const double> row, Workspace& work) const {
  if (work.clock == parts_.clock && same_bits(work.row, row)) {
    return work.prediction;
  }
  work.clock = -1;
  see_row(row, work);
  work.prediction = 0.0;
  if (parts_.labels.count > 0.0) {
    ask_global_experts(work);
    for (std::size_t v = 0; v < parts_.views.size(); ++v) {
      ask_local_experts(v, work);
    }
    work.prediction = aggregate(work);
  }
  work.clock = parts_.clock;
  return work.prediction;
}

// Clips outliers, standardizes the row, projects it on the metric of each view and finds the nearest center of
// Algorithm 1.
void MetricCore::see_row(std::span<const double> row, Workspace& work) const {
  std::ranges::copy(row, work.row.begin());
  if (parts_.labels.count >= labels_before_outliers) {
    clip_outliers(parts_.features, row, work.clipped);
  } else {
    std::ranges::copy(row, work.clipped.begin());
  }
  const std::span standard(work.standard.data(), dimension());
  for (std::size_t v = parts_.views.size(); v-- > 0;) {  // the first view last: later steps use its standardized row
    parts_.views[v].standardize(work.clipped, standard);
    project_row(standard, parts_.views[v].directions, work.views[v].coordinates);
  }
  work.standard.back() = 1.0;
  for (std::size_t k = 0; k < work.packing_point.size(); ++k) {
    work.packing_point[k] = work.views[0].coordinates[k] / parts_.packing.coordinate_scale;
  }
  work.packing_center = parts_.packing.centers.points.nearest(work.packing_point);
}

// Computes the predictions of the running mean, the ridge regressions and Algorithm 1.
void MetricCore::ask_global_experts(Workspace& work) const {
  const PackingCenters& packing = parts_.packing.centers;
  work.predictions[0] = parts_.labels.mean;
  work.predictions[1] = parts_.regressions.ridge.predict(work.standard);
  work.predictions[2] = parts_.labels.mean;
  work.predictions[3] = parts_.regressions.forgetting.predict(work.standard);
  if (work.packing_center.position >= 0) {
    work.predictions[2] = packing.mean(work.packing_center.position);
  }
}

// Computes the predictions of the local experts of a view.
void MetricCore::ask_local_experts(std::size_t v, Workspace& work) const {
  ViewWorkspace& view = work.views[v];
  find_neighbors(v, work);
  if (v == 0 && parts_.views[0].rank == dimension()) {
    fill_trends_from_offsets(view);
  } else {
    fill_trends_from_rows(v, work);
  }
  const std::span<double> own(work.predictions.data() + global_experts + v * LocalModels::experts,
                              LocalModels::experts);
  view.models.predict(view.near, own, view.slope);
  const double base = parts_.centers.mean_label(static_cast<std::size_t>(view.neighbors[0].position));
  for (double& prediction : own) {
    prediction += base;
  }
}

// Finds the nearest centers in a view and collects their labels, ages and offsets.
void MetricCore::find_neighbors(std::size_t v, Workspace& work) const {
  const CenterMemory& centers = parts_.centers;
  const KdTree& tree = trees_[v];
  ViewWorkspace& view = work.views[v];
  Neighborhood& near = view.near;
  near.count = tree.k_nearest(view.coordinates, std::numeric_limits<double>::infinity(), view.neighbors);
  const double base = centers.mean_label(static_cast<std::size_t>(view.neighbors[0].position));
  const auto rounds = static_cast<double>(parts_.clock) + 1.0;
  for (std::size_t j = 0; j < near.count; ++j) {
    const Neighbor& neighbor = view.neighbors[j];
    const auto center = static_cast<std::size_t>(neighbor.position);
    const auto labels = static_cast<double>(centers.label_counts[center]);
    near.squared_distances[j] = neighbor.squared_distance;
    near.label_counts[j] = labels;
    near.labels[j] = centers.mean_label(center) - base;
    near.ages[j] = 1.0 - centers.round_sums[center] / (labels * rounds);
    const auto point = tree.coordinates(neighbor);
    const auto offset = near.offset(j);
    for (std::size_t k = 0; k < offset.size(); ++k) {
      offset[k] = point[k] - view.coordinates[k];
    }
  }
}

// Computes the trends at the neighbors in the first view, relative to the query. The global regressions use the
// standardized features of this view, and its directions are orthogonal, so that offsets determine the trends.
void MetricCore::fill_trends_from_offsets(ViewWorkspace& view) const {
  const FeatureView& first = parts_.views[0];
  const std::span<double> slope(view.trend_slopes.data(), first.rank);
  const std::span<double> forgetting_slope(view.trend_slopes.data() + first.rank, first.rank);
  const std::size_t d = dimension();
  project_row({parts_.regressions.ridge.coefficients.data(), d}, first.directions, slope);
  project_row({parts_.regressions.forgetting.coefficients.data(), d}, first.directions, forgetting_slope);
  for (std::size_t k = 0; k < first.rank; ++k) {
    slope[k] /= direction_squares_[k];
    forgetting_slope[k] /= direction_squares_[k];
  }
  const std::size_t kriged = std::min(settings_.neighbors, view.near.count);
  for (std::size_t j = 0; j < kriged; ++j) {
    view.near.trend[j] = dot(slope, view.near.offset(j));
    view.near.forgetting_trend[j] = dot(forgetting_slope, view.near.offset(j));
  }
}

// The same for neighbors in another view, or if the view has fewer coordinates than features. Uses the rows of the
// centers.
void MetricCore::fill_trends_from_rows(std::size_t v, Workspace& work) const {
  const FeatureView& first = parts_.views[0];
  const std::size_t d = dimension();
  const std::span<const double> ridge = parts_.regressions.ridge.coefficients;
  const std::span<const double> forgetting = parts_.regressions.forgetting.coefficients;
  ViewWorkspace& view = work.views[v];
  const std::size_t kriged = std::min(settings_.neighbors, view.near.count);
  const std::span standard(work.buffer.data(), d);
  for (std::size_t j = 0; j < kriged; ++j) {
    first.standardize(parts_.centers.row(static_cast<std::size_t>(view.neighbors[j].position)), standard);
    double trend = 0.0;
    double forgetting_trend = 0.0;
    for (std::size_t k = 0; k < d; ++k) {
      const double gap = standard[k] - work.standard[k];
      trend += ridge[k] * gap;
      forgetting_trend += forgetting[k] * gap;
    }
    view.near.trend[j] = trend;
    view.near.forgetting_trend[j] = forgetting_trend;
  }
}

// Clips the predictions of the experts to the range of the labels and returns the final prediction.
double MetricCore::aggregate(Workspace& work) const {
  const ExpertAggregation& aggregation = parts_.aggregation;
  for (double& prediction : work.predictions) {
    prediction = clip_to_label_range(prediction);
  }
  aggregation.experts.compute_weights(work.weights);
  const double mean = dot(work.weights, work.predictions);
  double stacked = mean;
  for (std::size_t k = 0; k < work.predictions.size(); ++k) {
    work.deviations[k] = work.predictions[k] - mean;
    stacked += aggregation.stack.coefficients[k] * work.deviations[k];
  }
  work.mean_and_stacked = {mean, clip_to_label_range(stacked)};
  aggregation.top.compute_weights(work.top_weights);
  return dot(work.top_weights, work.mean_and_stacked);
}

// Clips a prediction to the range of the labels, extended by `label_margin`. Returns the mean label instead of NaN,
// which results from overflow.
double MetricCore::clip_to_label_range(double value) const {
  const LabelStatistics& labels = parts_.labels;
  const double slack = settings_.label_margin * (labels.high - labels.low);
  const double clipped = std::min(std::max(value, labels.low - slack), labels.high + slack);
  return std::isnan(value) ? labels.mean : clipped;
}

bool MetricCore::is_label_outlier(double label) const {
  const LabelStatistics& labels = parts_.labels;
  return labels.count >= labels_before_outliers && is_outlier(label, labels.low, labels.high, labels.outliers);
}

// Returns whether the predicted row has the same coordinates as a center in the first view.
bool MetricCore::is_duplicate(const Workspace& work) const {
  return parts_.centers.size() > 0 && work.views[0].neighbors[0].squared_distance == 0.0;
}

// Returns whether a round would bring the number of centers to `max_centers`.
bool MetricCore::fills_memory(double label, const Workspace& work) const {
  return parts_.centers.size() + 1 >= settings_.max_centers && !is_duplicate(work) && !is_label_outlier(label);
}

// Learns the label of the predicted row. An outlier is only counted.
void MetricCore::learn_row(double label, Workspace& work) {
  LabelStatistics& labels = parts_.labels;
  work.clock = -1;
  ++parts_.clock;
  if (is_label_outlier(label)) {
    labels.outliers += 1.0;
    return;
  }
  if (labels.count > 0.0) {
    update_aggregation(label, work);
    update_gops(work);
  }
  update_regressions(label, work);
  update_packing(label, work);
  update_centers(label, work);
  labels.update(label);
  parts_.features.update(work.row, work.clipped, labels.count);
}

void MetricCore::update_aggregation(double label, Workspace& work) {
  ExpertAggregation& aggregation = parts_.aggregation;
  aggregation.top.update(work.mean_and_stacked, work.prediction, label);
  aggregation.experts.update(work.predictions, work.mean_and_stacked[0], label);
  aggregation.stack.update(work.deviations, label - work.mean_and_stacked[0], work.buffer);
}

// Adds the slopes of the local fits to the gradient outer product of each view.
void MetricCore::update_gops(Workspace& work) {
  const std::span gradient(work.buffer.data(), dimension());
  for (std::size_t v = 0; v < parts_.views.size(); ++v) {
    parts_.views[v].add_slope(work.views[v].slope, parts_.regressions.ridge.coefficients, gradient);
  }
}

void MetricCore::update_regressions(double label, Workspace& work) {
  GlobalRegressions& regressions = parts_.regressions;
  const double count = parts_.labels.count;
  regressions.ridge.update(work.standard, label, work.buffer);
  if (std::fmod(count, rounds_per_discount) == 0.0) {
    const double least = rounds_per_coefficient * (static_cast<double>(parts_.views[0].fit_dimension) + 1.0);
    regressions.forgetting.discount(std::max(count / forgetting_divisor, least) / rounds_per_discount, work.buffer);
  }
  regressions.forgetting.update(work.standard, label, work.buffer);
}

// Runs a round of Algorithm 1.
void MetricCore::update_packing(double label, Workspace& work) {
  PackingExpert& packing = parts_.packing;
  ++packing.clock;
  const Neighbor& nearest = work.packing_center;
  const bool far = radius_.is_beyond(nearest.squared_distance, packing.clock);
  auto center = static_cast<std::size_t>(nearest.position);
  if (nearest.position < 0 || (far && packing.centers.size() < packing.max_centers)) {
    center = packing.centers.add(work.packing_point, packing.clock);
  }
  packing.centers.add_label(center, label);
}

// Merges the row with the nearest center if both have the same coordinates; otherwise adds a center.
void MetricCore::update_centers(double label, Workspace& work) {
  CenterMemory& centers = parts_.centers;
  if (is_duplicate(work)) {
    const auto nearest = static_cast<std::size_t>(work.views[0].neighbors[0].position);
    centers.merge(nearest, work.clipped, label, parts_.clock);
    return;
  }
  centers.add(work.clipped, label, parts_.clock);
  for (std::size_t v = 0; v < trees_.size(); ++v) {
    trees_[v].insert(work.views[v].coordinates);
  }
}

std::unique_ptr<MetricCore::Workspace> MetricCore::acquire_workspace() const {
  {
    const std::scoped_lock lock(workspaces_mutex_);
    if (!free_workspaces_.empty()) {
      std::unique_ptr<Workspace> work = std::move(free_workspaces_.back());
      free_workspaces_.pop_back();
      return work;
    }
  }
  return std::make_unique<Workspace>(*this);
}

void MetricCore::release_workspace(std::unique_ptr<Workspace> work) const {
  const std::scoped_lock lock(workspaces_mutex_);
  free_workspaces_.push_back(std::move(work));
}

}  // namespace ellipack
