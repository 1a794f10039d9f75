// Functions of the kd-tree for tests: invariants of the structure, and results of the filters.

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "kd_tree.hpp"

namespace ellipack {

namespace {

// Throws std::logic_error unless an invariant of the tree holds.
void require_invariant(bool holds, const char* rule) {
  if (!holds) {
    throw std::logic_error(rule);
  }
}

bool are_equal(std::span<const Interval> box, std::span<const Interval> other) {
  return std::ranges::equal(
      box, other, [](const Interval& one, const Interval& two) { return one.low == two.low && one.high == two.high; });
}

void extend(std::vector<Interval>& box, std::span<const Interval> other) {
  for (std::size_t k = 0; k < box.size(); ++k) {
    box[k].low = std::min(box[k].low, other[k].low);
    box[k].high = std::max(box[k].high, other[k].high);
  }
}

}  // namespace

std::vector<std::int32_t> KdTree::near_leaves(std::span<const double> query, double limit) const {
  std::vector<std::int32_t> leaves;
  const float largest = LeafBoxes::largest_sum(limit, vector_length(query), dimension_);
  for (std::size_t first = 0; first < leaf_count_; first += leaf_size) {
    const std::size_t size = std::min(leaf_size, leaf_count_ - first);
    LaneMask near = leaf_boxes_.near(first / leaf_size, size, query, largest);
    for (; near != 0; near = without_lowest(near)) {
      leaves.push_back(static_cast<std::int32_t>(first + lowest_lane(near)));
    }
  }
  return leaves;
}

std::vector<std::int32_t> KdTree::near_in_leaf(std::size_t leaf, std::span<const double> query, double limit) const {
  std::vector<std::int32_t> positions;
  const std::span<const std::int32_t> held = leaf_positions(leaf);
  if (!held.empty()) {
    LaneMask near = codes_.near(leaf, held.size(), query, distance_bound(limit));
    for (; near != 0; near = without_lowest(near)) {
      positions.push_back(held[lowest_lane(near)]);
    }
  }
  return positions;
}

void KdTree::check() const {
  const Checked all = check_below(root_, no_node);
  require_invariant(all.leaves == leaf_count_, "each leaf must be below the root");
  require_invariant(all.points == size_, "each point must be in a leaf");
}

KdTree::Checked KdTree::check_below(NodeId id, NodeId parent) const {
  require_invariant(node(id).parent == parent, "a child must refer to its parent");
  const Checked below = is_leaf(id) ? check_leaf(id) : check_inner(id);
  require_invariant(below.points == 0 || are_equal(below.box, box(id)), "a box must be the bounding box of its points");
  require_invariant(below.earliest == node(id).earliest, "a node must have the smallest position below it");
  return below;
}

KdTree::Checked KdTree::check_leaf(NodeId id) const {
  const std::size_t leaf = number_of(id);
  const std::span<const double> points = leaf_points(leaf);
  Checked held{.leaves = 1, .points = leaf_positions(leaf).size(), .box = std::vector<Interval>(dimension_)};
  for (const std::int32_t position : leaf_positions(leaf)) {
    held.earliest = std::min(held.earliest, position);
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    Interval& side = held.box[i % dimension_];
    side = {std::min(side.low, points[i]), std::max(side.high, points[i])};
  }
  require_invariant(size_ == 0 || held.points > 0, "a leaf below the root must not be empty");
  require_invariant(codes_.match(leaf, points), "codes must be the cells of the points");
  require_invariant(held.points == 0 || leaf_boxes_.match(leaf, held.box),
                    "the float32 box of a leaf must be its rounded box");
  return held;
}

KdTree::Checked KdTree::check_inner(NodeId id) const {
  const Node& inner = node(id);
  const auto axis = static_cast<std::size_t>(inner.axis);
  Checked below = check_below(inner.children[0], id);
  const Checked right = check_below(inner.children[1], id);
  require_invariant(below.box[axis].high <= inner.split, "points on the left must be <= split");
  require_invariant(right.box[axis].low >= inner.split, "points on the right must be >= split");
  below.leaves += right.leaves;
  below.points += right.points;
  below.earliest = std::min(below.earliest, right.earliest);
  extend(below.box, right.box);
  require_invariant(std::cmp_equal(below.leaves, inner.size), "an inner node must have the number of leaves below it");
  return below;
}

}  // namespace ellipack
