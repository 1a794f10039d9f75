#include "packing_tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <utility>

#include "checks.hpp"

namespace ellipack {

namespace {

TreeLevels checked_levels(TreeLevels levels, std::size_t dimension) {
  require(dimension > 0, "dimension must be >= 1");
  require(!levels.lipschitz.empty(), "there must be at least one level");
  require(std::ranges::all_of(levels.lipschitz, [](double each) { return each >= 1.0 && std::isfinite(each); }),
          "lipschitz must be finite and >= 1");
  require(levels.dimensions.size() == levels.lipschitz.size(), "dimensions must have one entry per level");
  require(std::ranges::all_of(levels.dimensions, [](std::int64_t each) { return each >= 0 && each <= largest_count; }),
          "dimensions must be from 0 to 2^52");
  require(levels.rank_starts.size() + 1 == dimension,
          "rank_starts must have one entry less than the number of coordinates");
  require(std::ranges::is_sorted(levels.rank_starts), "rank_starts must be sorted");
  return levels;
}

}  // namespace

double TreeLevels::radius(std::size_t level, std::int64_t round) const {
  const std::int64_t rank = dimensions[level] > 0
                                ? dimensions[level]
                                : 1 + (std::ranges::upper_bound(rank_starts, round) - rank_starts.begin());
  return std::pow(lipschitz[level] * static_cast<double>(round), -1.0 / (1.0 + static_cast<double>(rank)));
}

PackingTreeCore::PackingTreeCore(std::size_t dimension, TreeLevels levels)
    : PackingTreeCore(dimension, std::move(levels), TreeNodes{}, {}) {}

PackingTreeCore::PackingTreeCore(std::size_t dimension, TreeLevels levels, TreeNodes nodes,
                                 const DeferredCalibration& calibration)
    : dimension_(dimension),
      levels_(checked_levels(std::move(levels), dimension)),
      nodes_(std::move(nodes)),
      calibration_(calibration) {
  const std::size_t count = nodes_.size();
  require(count <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()), "there are too many nodes");
  require(nodes_.points.size() == count * dimension_, "points must have one row per node");
  require(nodes_.label_sums.size() == count, "label_sums must have one entry per node");
  require(nodes_.label_counts.size() == count, "label_counts must have one entry per node");
  require(nodes_.log_weights.size() == count, "log_weights must have one entry per node");
  require(all_finite(nodes_.points), "points must be finite");
  require(all_finite(nodes_.label_sums), "label_sums must be finite");
  require(all_finite(nodes_.log_weights), "log_weights must be finite");
  require(all_counts(nodes_.label_counts), "label_counts must be from 1 to 2^52");
  check_depths();
  for (std::size_t node = 0; node < count; ++node) {
    children_.emplace_back();
    if (node > 0) {
      add_child(static_cast<std::size_t>(nodes_.parents[node]), node);
    }
  }
}

// Checks that every row of a node went on to one of its children, down to the last level.
void PackingTreeCore::check_depths() const {
  std::vector<std::size_t> depths(nodes_.size(), 0);
  std::vector<std::int64_t> left = nodes_.label_counts;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    const std::int64_t parent = nodes_.parents[node];
    require(node == 0 ? parent == -1 : parent >= 0 && std::cmp_less(parent, node),
            "parents must be -1 for the root and earlier nodes for others");
    if (node > 0) {
      const auto above = static_cast<std::size_t>(parent);
      depths[node] = depths[above] + 1;
      left[above] -= nodes_.label_counts[node];
      require(depths[node] <= levels_.lipschitz.size(), "parents must not lead below the last level");
      require(left[above] >= 0, "label_counts of children must add up to that of their parent");
    }
  }
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    require(depths[node] == levels_.lipschitz.size() || left[node] == 0,
            "label_counts of children must add up to that of their parent");
  }
}

PackingTreeCore::PackingTreeCore(const PackingTreeCore& other)
    : PackingTreeCore(other, std::shared_lock(other.mutex_)) {}

PackingTreeCore::PackingTreeCore(const PackingTreeCore& other, const std::shared_lock<FairSharedMutex>&)
    : dimension_(other.dimension_),
      levels_(other.levels_),
      nodes_(other.nodes_),
      calibration_(other.calibration_),
      children_(other.children_),
      many_children_(other.many_children_) {}

void PackingTreeCore::learn(std::span<const double> coordinates, std::span<const double> labels,
                            const PredictionOutput& output) {
  output.check(labels.size());
  const std::unique_lock lock(mutex_);
  output.run_rounds(labels, calibration_, [&](std::size_t row) {
    return run_round(coordinates.subspan(row * dimension_, dimension_), labels[row]);
  });
}

void PackingTreeCore::predict(std::span<const double> coordinates, const PredictionOutput& output) const {
  const std::size_t count = coordinates.size() / dimension_;
  output.check(count);
  const std::shared_lock lock(mutex_);
  const ConformalIntervals::Calibration calibration = output.calibration_by(calibration_);
  for (std::size_t row = 0; row < count; ++row) {
    output.write(row, find_path(coordinates.subspan(row * dimension_, dimension_)).prediction, calibration);
  }
}

PackingTreeCore::Path PackingTreeCore::find_path(std::span<const double> point) const {
  const std::size_t depth = levels_.lipschitz.size();
  const std::int64_t round = rounds() + 1;
  Path path;
  if (nodes_.size() > 0) {
    path.nodes.push_back(0);
  }
  while (!path.nodes.empty() && path.nodes.size() <= depth) {
    const auto child = nearest_child(path.nodes.back(), point, levels_.radius(path.nodes.size() - 1, round));
    if (!child) {
      break;
    }
    path.nodes.push_back(*child);
  }
  double largest = path.nodes.size() <= depth ? 0.0 : -std::numeric_limits<double>::infinity();
  for (const std::size_t node : path.nodes) {
    largest = std::max(largest, nodes_.log_weights[node]);
  }
  double weighted = 0.0;
  double prediction = 0.5;
  for (std::size_t level = 0; level <= depth; ++level) {
    double log_weight = 0.0;  // of a new node, which predicts the same as its parent
    if (level < path.nodes.size()) {
      prediction = nodes_.mean(path.nodes[level]);
      log_weight = nodes_.log_weights[path.nodes[level]];
    }
    const double share = std::exp(log_weight - largest);
    path.predictions.push_back(prediction);
    path.shares.push_back(share);
    path.total += share;
    weighted += share * prediction;
  }
  path.prediction = std::clamp(weighted / path.total, 0.0, 1.0);
  return path;
}

double PackingTreeCore::run_round(std::span<const double> point, double label) {
  Path path = find_path(point);
  add_missing_nodes(path, point);
  double mixed = 0.0;
  for (std::size_t level = 0; level < path.nodes.size(); ++level) {
    const double error = path.predictions[level] - label;
    mixed += path.shares[level] * std::exp(-learning_rate * (error * error));
  }
  const double gain = std::log(path.total / mixed);  // keeps the sum of the weights on the path
  for (std::size_t level = 0; level < path.nodes.size(); ++level) {
    const std::size_t node = path.nodes[level];
    const double error = path.predictions[level] - label;
    nodes_.log_weights[node] += gain - learning_rate * (error * error);
    nodes_.label_sums[node] += label;
    ++nodes_.label_counts[node];
  }
  return path.prediction;
}

// Adds all nodes or, if there is not enough memory, none.
void PackingTreeCore::add_missing_nodes(Path& path, std::span<const double> point) {
  const std::size_t before = nodes_.size();
  try {
    while (path.nodes.size() <= levels_.lipschitz.size()) {
      add_node(path, point);
    }
  } catch (...) {
    remove_nodes_from(before);
    throw;
  }
}

void PackingTreeCore::add_node(Path& path, std::span<const double> point) {
  const std::size_t node = nodes_.size();
  if (node == static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw std::length_error("there are too many nodes");
  }
  nodes_.points.insert(nodes_.points.end(), point.begin(), point.end());
  nodes_.parents.push_back(path.nodes.empty() ? -1 : static_cast<std::int64_t>(path.nodes.back()));
  nodes_.label_sums.push_back(0.0);
  nodes_.label_counts.push_back(0);
  nodes_.log_weights.push_back(0.0);
  children_.emplace_back();
  if (!path.nodes.empty()) {
    add_child(path.nodes.back(), node);
  }
  path.nodes.push_back(node);
}

// Removes new nodes, the last of which may be incomplete. Only the first of them can be a child of an earlier node.
// That node may have a kd-tree with the child; without it, children are scanned until the next one is added.
void PackingTreeCore::remove_nodes_from(std::size_t first) {
  if (nodes_.parents.size() > first && nodes_.parents[first] >= 0) {
    const auto parent = static_cast<std::size_t>(nodes_.parents[first]);
    std::erase_if(children_[parent], [first](std::int32_t child) { return std::cmp_greater_equal(child, first); });
    many_children_.erase(parent);
  }
  nodes_.points.resize(first * dimension_);
  nodes_.parents.resize(first);
  nodes_.label_sums.resize(first);
  nodes_.label_counts.resize(first);
  nodes_.log_weights.resize(first);
  children_.resize(first);
}

void PackingTreeCore::add_child(std::size_t node, std::size_t child) {
  std::vector<std::int32_t>& siblings = children_[node];
  siblings.push_back(static_cast<std::int32_t>(child));
  if (siblings.size() <= most_scanned) {
    return;
  }
  const auto [place, is_new] = many_children_.try_emplace(node, dimension_);
  if (is_new) {
    for (const std::int32_t each : siblings) {
      place->second.insert(point_of(static_cast<std::size_t>(each)));
    }
  } else {
    place->second.insert(point_of(child));
  }
}

std::span<const double> PackingTreeCore::point_of(std::size_t node) const {
  return std::span(nodes_.points).subspan(node * dimension_, dimension_);
}

// Returns the nearest child of a node if it is within a radius.
std::optional<std::size_t> PackingTreeCore::nearest_child(std::size_t node, std::span<const double> point,
                                                          double radius) const {
  const auto index = many_children_.find(node);
  const Neighbor nearest = index == many_children_.end() ? scan_children(node, point) : index->second.nearest(point);
  if (nearest.position < 0 || std::sqrt(nearest.squared_distance) > radius) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(children_[node][static_cast<std::size_t>(nearest.position)]);
}

// The same as a search of a kd-tree, which would take more memory than a few children.
Neighbor PackingTreeCore::scan_children(std::size_t node, std::span<const double> point) const {
  Neighbor nearest;
  const std::vector<std::int32_t>& siblings = children_[node];
  for (std::size_t position = 0; position < siblings.size(); ++position) {
    const std::span<const double> at = point_of(static_cast<std::size_t>(siblings[position]));
    double squared = 0.0;
    for (std::size_t i = 0; i < dimension_; ++i) {
      const double difference = point[i] - at[i];
      squared += difference * difference;
    }
    if (squared < nearest.squared_distance) {
      nearest.squared_distance = squared;
      nearest.position = static_cast<std::int32_t>(position);
    }
  }
  return nearest;
}

std::size_t PackingTreeCore::size() const {
  const std::shared_lock lock(mutex_);
  return nodes_.size();
}

std::int64_t PackingTreeCore::clock() const {
  const std::shared_lock lock(mutex_);
  return rounds();
}

DeferredCalibration PackingTreeCore::calibration() const {
  const std::shared_lock lock(mutex_);
  return calibration_;
}

void PackingTreeCore::set_calibration(const DeferredCalibration& calibration) {
  const std::unique_lock lock(mutex_);
  calibration_ = calibration;
}

std::pair<TreeNodes, DeferredCalibration> PackingTreeCore::nodes_and_calibration() const {
  const std::shared_lock lock(mutex_);
  return {nodes_, calibration_};
}

}  // namespace ellipack
