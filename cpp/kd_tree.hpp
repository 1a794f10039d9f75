// An exact nearest neighbor index with insertion: a kd-tree whose leaves hold up to 64 points.
//
// Coordinates are whitened, so that the metric is Euclidean and the first coordinates usually contribute most to
// distances. The squared distance of two points is the sum of squared differences from the first coordinate to the
// last, with each operation rounded once. Searches compare these computed distances; ties go to the point that was
// inserted first. Results of searches do not depend on the shape of the tree and, apart from ties, not on the order of
// insertion.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "leaf_filters.hpp"
#include "simd.hpp"

namespace ellipack {

// A point found by a search: its position in the order of insertion, and the slot of its coordinates.
struct Neighbor {
  double squared_distance = std::numeric_limits<double>::infinity();
  std::int32_t position = -1;
  std::int32_t slot = -1;
};

class KdTree {
 public:
  static constexpr std::size_t leaf_size = lane_count;

  explicit KdTree(std::size_t dimension);

  // Builds a balanced tree over points, one per row.
  KdTree(std::span<const double> points, std::size_t dimension);

  std::size_t size() const;
  std::size_t dimension() const;
  std::size_t memory_bytes() const;

  // Returns the coordinates of all points, one per row, in the order of insertion.
  std::vector<double> points() const;

  // Returns the coordinates of some points by their positions, which must be in range.
  std::vector<double> points(std::span<const std::int64_t> positions) const;

  // Returns the coordinates of a point found by a search. The span is valid until the next insertion.
  std::span<const double> coordinates(const Neighbor& neighbor) const;

  std::size_t leaf_count() const;

  // Returns the number of splits above the deepest leaf.
  std::size_t depth() const;

  // Returns the positions of the points in a leaf.
  std::span<const std::int32_t> leaf_positions(std::size_t leaf) const;

  // Allocates what `insert` needs for a point, so that it does not throw. Throws like it. Points and results of
  // searches stay the same, except for slots.
  void make_room(std::span<const double> point);

  // Inserts a point at the next position. Throws std::length_error if there are too many points for 32-bit slots. If it
  // throws, the points of the tree are unchanged.
  void insert(std::span<const double> point);

  // Returns the nearest point; its position is -1 if the tree is empty.
  Neighbor nearest(std::span<const double> query) const;

  // Fills `found` with the nearest points at a squared distance of at most `limit`, sorted by (squared distance,
  // position). Returns the number of points found, at most found.size().
  std::size_t k_nearest(std::span<const double> query, double limit, std::span<Neighbor> found) const;

  // Returns all points at a squared distance of at most `limit`, sorted by (squared distance, position).
  std::vector<Neighbor> within(std::span<const double> query, double limit) const;

  // For tests: return the leaves, and the positions in a leaf, that pass the filters.
  std::vector<std::int32_t> near_leaves(std::span<const double> query, double limit) const;
  std::vector<std::int32_t> near_in_leaf(std::size_t leaf, std::span<const double> query, double limit) const;

  // For tests: throws std::logic_error unless all invariants hold.
  void check() const;

 private:
  class Builder;
  class Search;

  // Leaf i is node 2 i, inner node i is node 2 i + 1.
  using NodeId = std::int32_t;
  static constexpr NodeId no_node = -1;

  struct Node {
    double split = 0.0;  // along `axis`, left points are <= split, right points are >= split
    NodeId parent = no_node;
    std::array<NodeId, 2> children = {no_node, no_node};
    std::int32_t axis = 0;
    std::int32_t size = 0;  // number of points in a leaf, or of leaves below an inner node
    std::int32_t earliest = std::numeric_limits<std::int32_t>::max();  // smallest position below
  };

  struct Rebuild {
    NodeId top = no_node;
    bool adds_leaf = false;
  };

  // Result of `check` for a subtree.
  struct Checked {
    std::size_t leaves = 0;
    std::size_t points = 0;
    std::int32_t earliest = std::numeric_limits<std::int32_t>::max();
    std::vector<Interval> box = {};
  };

  // Upper bound on the depth: a node has at most 0.7 of the leaves of its parent, and there are at most 2^25 leaves.
  static constexpr std::size_t max_depth = 64;

  static bool is_leaf(NodeId node) { return (node & 1) == 0; }
  static std::size_t number_of(NodeId node) { return static_cast<std::size_t>(node) >> 1; }
  static NodeId leaf_node(std::size_t leaf) { return static_cast<NodeId>(2 * leaf); }
  static NodeId inner_node(std::size_t inner) { return static_cast<NodeId>(2 * inner + 1); }

  Node& node(NodeId id) { return nodes_[static_cast<std::size_t>(id)]; }
  const Node& node(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }

  std::span<Interval> box(NodeId id) {
    return std::span(boxes_).subspan(static_cast<std::size_t>(id) * dimension_, dimension_);
  }

  std::span<const Interval> box(NodeId id) const {
    return std::span(boxes_).subspan(static_cast<std::size_t>(id) * dimension_, dimension_);
  }

  std::span<const double> leaf_points(std::size_t leaf) const {
    const auto held = static_cast<std::size_t>(node(leaf_node(leaf)).size);
    return std::span(points_).subspan(leaf * leaf_size * dimension_, held * dimension_);
  }

  void resize_leaves(std::size_t leaves);
  NodeId leaf_of(std::span<const double> point) const;
  void insert_into_leaf(NodeId leaf, std::span<const double> point);
  std::size_t append_to_leaf(std::size_t leaf, std::span<const double> point);
  bool extend_box(NodeId id, std::span<const double> point);

  std::int32_t leaves_below(NodeId id) const;
  Rebuild plan_rebuild(NodeId full_leaf) const;
  NodeId group_of(NodeId leaf) const;
  NodeId highest_unbalanced(NodeId top) const;
  std::size_t points_below(NodeId top) const;
  void rebuild_around(NodeId full_leaf);
  Checked check_below(NodeId id, NodeId parent) const;
  Checked check_leaf(NodeId id) const;
  Checked check_inner(NodeId id) const;
  void replace_child(NodeId parent, NodeId old_child, NodeId new_child);

  std::size_t dimension_;
  std::size_t size_ = 0;
  std::size_t leaf_count_ = 1;
  NodeId root_ = 0;
  simd::AlignedVector<Node> nodes_;
  simd::AlignedVector<Interval> boxes_;  // (node, coordinate)
  simd::AlignedVector<double> points_;   // (leaf, lane, coordinate)
  std::vector<std::int32_t> positions_;  // (leaf, lane)
  LeafCodes codes_;
  LeafBoxes leaf_boxes_;
};

}  // namespace ellipack
