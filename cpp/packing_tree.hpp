// A tree of packings for locally adaptive regression (Kuzborskij and Cesa-Bianchi 2020), in whitened coordinates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "deferred_calibration.hpp"
#include "fair_shared_mutex.hpp"
#include "kd_tree.hpp"
#include "prediction_output.hpp"

namespace ellipack {

// The levels below the root, from the largest radius to the smallest. The radius of a level is
// (lipschitz * t)^(-1 / (1 + dimension)) in round t. A dimension of 0 stands for the effective rank in round t.
struct TreeLevels {
  std::vector<double> lipschitz;
  std::vector<std::int64_t> dimensions;
  std::vector<std::int64_t> rank_starts;  // rounds in which the effective rank increases

  double radius(std::size_t level, std::int64_t round) const;
};

// The nodes in the order of their creation. Node 0 is the root, and parents come before their children.
struct TreeNodes {
  std::vector<double> points;  // (node, coordinate)
  std::vector<std::int64_t> parents;
  std::vector<double> label_sums;
  std::vector<std::int64_t> label_counts;
  std::vector<double> log_weights;

  std::size_t size() const { return parents.size(); }

  // Returns the mean label of a node.
  double mean(std::size_t node) const { return label_sums[node] / static_cast<double>(label_counts[node]); }
};

// The learner with its state. A row descends from the root: at each level to the nearest child of the current node, or
// to a new child if that is beyond the radius. Each node on the path predicts the mean of its labels; a new one
// predicts that of its parent. The prediction for the row is their weighted mean. Weights of nodes that predict well
// increase at the expense of the others on the path.
//
// Threads may predict while one learns. Calls take effect in the order in which they start.
class PackingTreeCore {
 public:
  // Exponents of losses; the square loss on [0, 1] is exp-concave with this rate.
  static constexpr double learning_rate = 0.5;

  // Largest number of children that are scanned; more have a kd-tree.
  static constexpr std::size_t most_scanned = 64;

  PackingTreeCore(std::size_t dimension, TreeLevels levels);

  // Restores nodes. Throws std::invalid_argument if no sequence of rounds leads to them.
  PackingTreeCore(std::size_t dimension, TreeLevels levels, TreeNodes nodes, const DeferredCalibration& calibration);

  PackingTreeCore(const PackingTreeCore& other);
  PackingTreeCore& operator=(const PackingTreeCore&) = delete;

  // Runs one round per row of `coordinates`. Writes the predictions and intervals, each made before its label was
  // learned.
  void learn(std::span<const double> coordinates, std::span<const double> labels, const PredictionOutput& output);

  // Writes the prediction and intervals of each row of `coordinates`; 1/2 before the first round.
  void predict(std::span<const double> coordinates, const PredictionOutput& output) const;

  std::size_t dimension() const { return dimension_; }
  const TreeLevels& levels() const { return levels_; }
  std::size_t size() const;
  std::int64_t clock() const;
  DeferredCalibration calibration() const;
  void set_calibration(const DeferredCalibration& calibration);

  // Returns copies of the state between two rounds.
  std::pair<TreeNodes, DeferredCalibration> nodes_and_calibration() const;

 private:
  // The nodes on the path of a row that exist already, and the predictions and weights of all, new ones included.
  struct Path {
    std::vector<std::size_t> nodes;
    std::vector<double> predictions;
    std::vector<double> shares;  // weights, divided by the largest on the path
    double total = 0.0;          // sum of the shares
    double prediction = 0.5;
  };

  // Copies another core while `lock` protects it.
  PackingTreeCore(const PackingTreeCore& other, const std::shared_lock<FairSharedMutex>& lock);

  // The caller holds the lock.
  std::int64_t rounds() const { return nodes_.size() == 0 ? 0 : nodes_.label_counts[0]; }
  Path find_path(std::span<const double> point) const;
  double run_round(std::span<const double> point, double label);
  void add_missing_nodes(Path& path, std::span<const double> point);
  void add_node(Path& path, std::span<const double> point);
  void remove_nodes_from(std::size_t first);
  std::optional<std::size_t> nearest_child(std::size_t node, std::span<const double> point, double radius) const;
  Neighbor scan_children(std::size_t node, std::span<const double> point) const;
  void add_child(std::size_t node, std::size_t child);
  std::span<const double> point_of(std::size_t node) const;
  void check_depths() const;

  std::size_t dimension_;
  TreeLevels levels_;
  mutable FairSharedMutex mutex_;  // guards the members below
  TreeNodes nodes_;
  DeferredCalibration calibration_;
  std::vector<std::vector<std::int32_t>> children_;        // of each node, in the order of their creation
  std::unordered_map<std::size_t, KdTree> many_children_;  // the same for nodes with more than `most_scanned`
};

}  // namespace ellipack
