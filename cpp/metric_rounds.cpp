#include "metric_rounds.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "checks.hpp"
#include "projection.hpp"

namespace ellipack {

namespace {

// The memory of the regression with forgetting is an eighth of all rounds, but at least four rounds per coefficient of
// a local fit. It is discounted every fourth round, by four times as much, which is cheaper than every round.
constexpr double forgetting_divisor = 8.0;
constexpr double rounds_per_coefficient = 4.0;
constexpr double rounds_per_discount = 4.0;

// The error to expect is a weighted mean of those of the neighbors and of the mean error, which has the weight of two
// neighbors. The farthest neighbor has a tenth of the weight of the nearest.
constexpr double mean_error_weight = 2.0;
constexpr double weight_decrease = 0.9;

// Returns whether two rows are bitwise equal; 0 and -0 differ.
bool same_bits(std::span<const double> left, std::span<const double> right) {
  return std::memcmp(left.data(), right.data(), left.size_bytes()) == 0;
}

void check(const MetricSettings& settings) {
  require(settings.neighbors >= 2 && settings.neighbors <= MetricSettings::max_neighbors,
          "neighbors must be from 2 to 512");
  require(settings.max_centers >= 3, "max_centers must be at least 3");
  require(settings.label_margin >= 0.0 && std::isfinite(settings.label_margin), "label_margin must be finite and >= 0");
}

}  // namespace

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
  const std::size_t d = centers.dimension();
  require(!views.empty(), "views must not be empty");
  for (const FeatureView& view : views) {
    view.check();
    require(view.dimension == d, "a view must have as many features as the centers");
  }
  require(views[0].knots.empty(), "the first view must have no knots");
  require(index.trees.size() == views.size(), "index must have one entry per view");
  for (std::size_t v = 0; v < views.size(); ++v) {
    require(index.trees[v]->size() == centers.size() && index.trees[v]->dimension() == views[v].rank,
            "index must have the coordinates of each center in each view");
  }
  packing.check();
  require(packing.centers.points.dimension() == views[0].rank,
          "packing must have as many coordinates as the first view");
  require(clock >= 0 && clock <= largest_count, "clock must be from 0 to 2^52");
  for (const LeastSquares& regression : {std::cref(regressions.ridge), std::cref(regressions.forgetting)}) {
    regression.check();
    require(regression.size() == d + 1, "a regression must have one coefficient per feature and a constant");
  }
  aggregation.check();
  require(aggregation.size() == MetricRounds::global_experts + views.size() * LocalModels::experts,
          "the aggregation must have one entry per expert");
  labels.check();
  features.check();
  intervals.check();
  require(features.mean.size() == d, "the statistics of features must have one entry per feature");
  require((labels.count > 0.0) == (centers.size() > 0), "centers must exist if and only if labels were learned");
}

MetricRounds::Workspace::View::View(const FeatureView& view, std::size_t kriged, std::shared_ptr<LocalModels> buffers)
    : coordinates(view.rank),
      neighbors(std::max(kriged, LocalModels::neighbors_of_fit(view.fit_dimension))),
      near(neighbors.size(), view.rank),
      models(std::move(buffers)),
      slope(view.fit_dimension),
      gradient(view.dimension),
      slope_buffer(3 * view.fit_dimension),
      trend_slopes(2 * view.rank) {}

MetricRounds::Workspace::Workspace(const MetricRounds& rounds, const Workspace* first)
    : row(rounds.dimension()),
      clipped(rounds.dimension()),
      standard(rounds.dimension() + 1),
      packing_point(rounds.parts_.views[0].rank),
      predictions(rounds.parts_.aggregation.size()),
      aggregation(predictions.size()),
      buffer(rounds.dimension() + 1) {
  const std::size_t kriged = rounds.settings_.neighbors;
  for (const FeatureView& view : rounds.parts_.views) {
    views.emplace_back(view, kriged,
                       first != nullptr ? first->views[views.size()].models
                                        : std::make_shared<LocalModels>(kriged, view.fit_dimension, view.rank));
  }
}

MetricRounds::MetricRounds(const MetricSettings& settings, MetricParts parts)
    : settings_((check(settings), settings)),
      parts_((parts.check(), std::move(parts))),
      radius_(parts_.packing.rank_starts) {
  const FeatureView& first = parts_.views[0];
  direction_squares_.assign(first.rank, 0.0);
  for (std::size_t i = 0; i < first.dimension; ++i) {
    for (std::size_t j = 0; j < first.rank; ++j) {
      direction_squares_[j] += first.directions[i * first.rank + j] * first.directions[i * first.rank + j];
    }
  }
}

std::vector<double> MetricRounds::expert_weights() const {
  std::vector<double> weights(parts_.aggregation.size());
  parts_.aggregation.experts.compute_weights(weights);
  return weights;
}

double MetricRounds::predict_row(std::span<const double> row, Workspace& work) const {
  if (work.clock == parts_.clock && same_bits(work.row, row)) {
    return work.aggregation.prediction;
  }
  work.clock = -1;
  work.has_gradients = false;
  project_on_views(row, work);
  find_packing_center(work);
  work.aggregation.prediction = 0.0;
  work.relative_scale = 1.0;
  if (has_labels()) {
    predict_globally(work);
    for (std::size_t v = 0; v < parts_.views.size(); ++v) {
      Workspace::View& view = work.views[v];
      find_neighbors(v, work);
      fill_trends(v, work);
      view.models->predict(view.near, local_predictions(v, work), view.slope);
    }
    parts_.aggregation.aggregate(work.predictions, prediction_range(), work.aggregation);
    work.relative_scale = local_scale(work);
  }
  work.clock = parts_.clock;
  return work.aggregation.prediction;
}

// Clips outliers, standardizes the row and projects it on the metric of each view.
void MetricRounds::project_on_views(std::span<const double> row, Workspace& work) const {
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
}

// Finds the nearest center of Algorithm 1.
void MetricRounds::find_packing_center(Workspace& work) const {
  for (std::size_t k = 0; k < work.packing_point.size(); ++k) {
    work.packing_point[k] = work.views[0].coordinates[k] / parts_.packing.coordinate_scale;
  }
  work.packing_center = parts_.packing.centers.points.nearest(work.packing_point);
}

// Computes the predictions of the running mean, the ridge regressions and Algorithm 1.
void MetricRounds::predict_globally(Workspace& work) const {
  const PackingCenters& packing = parts_.packing.centers;
  work.predictions[0] = parts_.labels.mean;
  work.predictions[1] = parts_.regressions.ridge.predict(work.standard);
  work.predictions[2] = parts_.labels.mean;
  work.predictions[3] = parts_.regressions.forgetting.predict(work.standard);
  if (work.packing_center.position >= 0) {
    work.predictions[2] = packing.mean(work.packing_center.position);
  }
}

// Returns the predictions of the local experts of a view.
std::span<double> MetricRounds::local_predictions(std::size_t v, Workspace& work) {
  return std::span(work.predictions).subspan(global_experts + v * LocalModels::experts, LocalModels::experts);
}

// Finds the nearest centers in a view and collects their labels, ages and offsets.
void MetricRounds::find_neighbors(std::size_t v, Workspace& work) const {
  const CenterMemory& centers = parts_.centers;
  const KdTree& tree = *parts_.index.trees[v];
  Workspace::View& view = work.views[v];
  Neighborhood& near = view.near;
  near.count = tree.k_nearest(view.coordinates, std::numeric_limits<double>::infinity(), view.neighbors);
  near.base = centers.mean_label(static_cast<std::size_t>(view.neighbors[0].position));
  const auto rounds = static_cast<double>(parts_.clock) + 1.0;
  for (std::size_t j = 0; j < near.count; ++j) {
    const Neighbor& neighbor = view.neighbors[j];
    const auto center = static_cast<std::size_t>(neighbor.position);
    const auto labels = static_cast<double>(centers.label_counts[center]);
    near.squared_distances[j] = neighbor.squared_distance;
    near.label_counts[j] = labels;
    near.labels[j] = centers.mean_label(center) - near.base;
    near.ages[j] = 1.0 - centers.round_sums[center] / (labels * rounds);
    const auto point = tree.coordinates(neighbor);
    const auto offset = near.offset(j);
    for (std::size_t k = 0; k < offset.size(); ++k) {
      offset[k] = point[k] - view.coordinates[k];
    }
  }
}

// Returns the error to expect, in units of the mean error, from the errors at the neighbors in the first view.
double MetricRounds::local_scale(const Workspace& work) const {
  const Workspace::View& view = work.views[0];
  const std::size_t count = std::min(settings_.neighbors, view.near.count);
  const double farthest = view.near.squared_distances[count - 1];
  const double least_normal = std::numeric_limits<double>::min();  // so that the division does not overflow
  const double decrease = farthest >= least_normal ? weight_decrease / farthest : 0.0;
  double weights = mean_error_weight;
  double errors = mean_error_weight;
  for (std::size_t j = 0; j < count; ++j) {
    const double weight = 1.0 - decrease * view.near.squared_distances[j];
    weights += weight;
    errors += weight * parts_.centers.mean_error(static_cast<std::size_t>(view.neighbors[j].position));
  }
  return errors / weights;
}

// Computes the trends of the global regressions at the neighbors, relative to the query.
void MetricRounds::fill_trends(std::size_t v, Workspace& work) const {
  if (v == 0 && parts_.views[0].rank == dimension()) {
    fill_trends_from_offsets(work);
  } else {
    fill_trends_from_rows(v, work);
  }
}

// Computes the trends at the neighbors in the first view, relative to the query. The global regressions use the
// standardized features of this view, and its directions are orthogonal, so that offsets determine the trends.
void MetricRounds::fill_trends_from_offsets(Workspace& work) const {
  Workspace::View& view = work.views[0];
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
void MetricRounds::fill_trends_from_rows(std::size_t v, Workspace& work) const {
  const FeatureView& first = parts_.views[0];
  const std::size_t d = dimension();
  const std::span<const double> ridge = parts_.regressions.ridge.coefficients;
  const std::span<const double> forgetting = parts_.regressions.forgetting.coefficients;
  Workspace::View& view = work.views[v];
  const std::size_t kriged = std::min(settings_.neighbors, view.near.count);
  const std::span standard(work.buffer.data(), d);
  for (std::size_t j = 0; j < kriged; ++j) {
    first.standardize(parts_.centers.rows[static_cast<std::size_t>(view.neighbors[j].position)], standard);
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

void MetricRounds::find_gradients(Workspace& work) const {
  if (work.has_gradients || !has_labels()) {
    return;
  }
  for (std::size_t v = 0; v < parts_.views.size(); ++v) {
    Workspace::View& view = work.views[v];
    parts_.views[v].find_gradient(view.slope, parts_.regressions.ridge.coefficients,
                                  {view.gradient, view.slope_buffer});
  }
  work.has_gradients = true;
}

std::span<const double> MetricRounds::gradient(const Workspace& work) { return work.views[0].gradient; }

void MetricRounds::find_slopes(std::span<const double> model, const Workspace& work, Surrogates& surrogates) const {
  const std::size_t d = dimension();
  const auto& [ridge, forgetting] = parts_.regressions;
  if (!model.empty()) {
    project_row(work.standard, model, surrogates.modeled_slopes);
  }
  for (std::size_t k = 0; k < d; ++k) {
    const double local = work.views[0].gradient[k];
    surrogates.slopes[k] = {ridge.coefficients[k], forgetting.coefficients[k], std::isfinite(local) ? local : 0.0,
                            surrogates.modeled_slopes[k]};
  }
  surrogates.curvatures = model.first(model.empty() ? 0 : d * d);
}

void MetricRounds::find_gaps(std::span<const double> other, const Workspace& work, std::span<double> gaps) const {
  parts_.views[0].standardize(other, gaps);
  std::ranges::transform(gaps, work.standard, gaps.begin(), std::minus());
}

PredictionRange MetricRounds::prediction_range() const {
  const LabelStatistics& labels = parts_.labels;
  const double slack = settings_.label_margin * (labels.high - labels.low);
  return {labels.low - slack, labels.high + slack, labels.mean};
}

bool MetricRounds::is_label_outlier(double label) const {
  const LabelStatistics& labels = parts_.labels;
  return labels.count >= labels_before_outliers && is_outlier(label, labels.low, labels.high, labels.outliers);
}

// Returns the center that is nearest to the predicted row in the first view.
std::size_t MetricRounds::nearest_center(const Workspace& work) {
  return static_cast<std::size_t>(work.views[0].neighbors[0].position);
}

// Returns whether the predicted row has the same coordinates as a center in the first view.
bool MetricRounds::is_duplicate(const Workspace& work) const {
  return parts_.centers.size() > 0 && work.views[0].neighbors[0].squared_distance == 0.0;
}

bool MetricRounds::fills_memory(double label, const Workspace& work) const {
  return fills_memory(label) && !is_duplicate(work);
}

bool MetricRounds::fills_memory(double label) const {
  return parts_.centers.size() + 1 >= settings_.max_centers && !is_label_outlier(label);
}

void MetricRounds::make_room_to_learn(double label, const Workspace& work) {
  if (is_label_outlier(label)) {
    return;
  }
  if (has_labels()) {
    parts_.aggregation.make_room();
    for (FeatureView& view : parts_.views) {
      view.make_room();
    }
  }
  parts_.regressions.ridge.make_room();
  parts_.regressions.forgetting.make_room();
  if (adds_packing_center(work)) {
    parts_.packing.centers.make_room(work.packing_point);
  }
  if (is_duplicate(work)) {
    parts_.centers.make_room_to_merge(nearest_center(work));
  } else {
    make_room_for_center(work);
  }
}

void MetricRounds::make_room_to_store(std::span<const double> row, double label, Workspace& work) {
  work.clock = -1;
  if (!is_label_outlier(label)) {
    project_on_views(row, work);
    make_room_for_center(work);
  }
}

void MetricRounds::make_room_for_center(const Workspace& work) {
  parts_.centers.make_room_to_add();
  for (std::size_t v = 0; v < work.views.size(); ++v) {
    parts_.index.trees[v].write().make_room(work.views[v].coordinates);
  }
}

void MetricRounds::release_inverses() {
  parts_.regressions.ridge.inverse = {};
  parts_.regressions.forgetting.inverse = {};
}

void MetricRounds::learn_row(double label, const Published& published, Workspace& work) {
  work.clock = -1;
  ++parts_.clock;
  parts_.intervals.learn_label(label, published.bounds);
  parts_.intervals.learn_misses(label, published.bounds);
  if (count_outlier(label)) {
    return;
  }
  const double error = parts_.intervals.learn_error(label - published.prediction, published.relative_scale);
  if (has_labels()) {
    parts_.aggregation.update(work.predictions, label, work.aggregation);
    update_gops(work);
  }
  update_regressions(label, work);
  update_packing(label, work);
  update_centers(label, error, work);
  update_statistics(label, work);
}

void MetricRounds::store_row(double label, const Published& published, Workspace& work) {
  ++parts_.clock;
  parts_.intervals.learn_label(label, published.bounds);
  parts_.intervals.learn_misses(label, published.bounds);
  if (count_outlier(label)) {
    return;
  }
  add_center(label, parts_.intervals.learn_error(label - published.prediction, published.relative_scale), work);
  update_statistics(label, work);
}

// Counts a label if it is an outlier, and returns whether it is.
bool MetricRounds::count_outlier(double label) {
  const bool outlier = is_label_outlier(label);
  if (outlier) {
    parts_.labels.outliers += 1.0;
  }
  return outlier;
}

void MetricRounds::update_statistics(double label, const Workspace& work) {
  parts_.labels.update(label);
  parts_.features.update(work.row, work.clipped, parts_.labels.count);
}

// Adds the slopes of the local fits to the gradient outer product of each view.
void MetricRounds::update_gops(Workspace& work) {
  find_gradients(work);
  for (std::size_t v = 0; v < parts_.views.size(); ++v) {
    parts_.views[v].add_gradient(work.views[v].gradient);
  }
}

void MetricRounds::update_regressions(double label, Workspace& work) {
  GlobalRegressions& regressions = parts_.regressions;
  if (regressions.ridge.inverse->empty()) {  // see `release_inverses`
    return;
  }
  const double count = parts_.labels.count;
  regressions.ridge.update(work.standard, label, work.buffer);
  if (std::fmod(count, rounds_per_discount) == 0.0) {
    const double least = rounds_per_coefficient * (static_cast<double>(parts_.views[0].fit_dimension) + 1.0);
    regressions.forgetting.discount(std::max(count / forgetting_divisor, least) / rounds_per_discount, work.buffer);
  }
  regressions.forgetting.update(work.standard, label, work.buffer);
}

// Returns whether the next round of Algorithm 1 adds a center.
bool MetricRounds::adds_packing_center(const Workspace& work) {
  const PackingExpert& packing = parts_.packing;
  const Neighbor& nearest = work.packing_center;
  return nearest.position < 0 || (radius_.is_beyond(nearest.squared_distance, packing.clock + 1) &&
                                  packing.centers.size() < packing.max_centers);
}

// Runs a round of Algorithm 1.
void MetricRounds::update_packing(double label, Workspace& work) {
  PackingExpert& packing = parts_.packing;
  const bool adds_center = adds_packing_center(work);
  ++packing.clock;
  const std::size_t center = adds_center ? packing.centers.add(work.packing_point, packing.clock)
                                         : static_cast<std::size_t>(work.packing_center.position);
  packing.centers.add_label(center, label);
}

// Merges the row with the nearest center if both have the same coordinates; otherwise adds a center.
void MetricRounds::update_centers(double label, double error, Workspace& work) {
  if (is_duplicate(work)) {
    parts_.centers.merge(nearest_center(work), {work.clipped, label, error, parts_.clock});
    return;
  }
  add_center(label, error, work);
}

void MetricRounds::add_center(double label, double error, const Workspace& work) {
  parts_.centers.add({work.clipped, label, error, parts_.clock});
  for (std::size_t v = 0; v < work.views.size(); ++v) {
    parts_.index.trees[v].write().insert(work.views[v].coordinates);
  }
}

}  // namespace ellipack
