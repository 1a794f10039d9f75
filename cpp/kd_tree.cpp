// Layout, insertion and bulk build of the kd-tree.
//
// A node splits its points by rank, not by value. Equal points may be on both sides, so that leaves can be split for
// any number of duplicates. When a leaf is full, it is rebuilt together with its neighbors, up to `leaves_per_group`
// leaves. The group gets one more leaf only if it is nearly full, so that leaves stay well filled even if points are
// inserted in sorted order. When one side of a node gets too large, the whole subtree is rebuilt. The amortized cost of
// an insertion is logarithmic.

#include "kd_tree.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "simd.hpp"

namespace ellipack {

namespace {

constexpr std::size_t bulk_fill = 60;         // points per leaf after a bulk build
constexpr std::int32_t leaves_per_group = 8;  // largest number of leaves that are rebuilt when one of them is full
constexpr std::size_t group_fill = 58;        // mean number of points per leaf above which a group gets another leaf
constexpr std::size_t axis_sample = 32;       // approximate number of points that determine the axis of a split
constexpr double unbalanced_share = 0.7;      // largest share of the leaves of a node on one side
constexpr std::size_t max_leaves = std::size_t{1} << 25;

// Slots and positions are 32-bit integers. There are at most as many positions as slots.
static_assert(max_leaves * KdTree::leaf_size <= std::size_t{1} << 31);

std::size_t checked_dimension(std::size_t dimension) {
  if (dimension == 0) {
    throw std::invalid_argument("dimension must be >= 1, got 0");
  }
  return dimension;
}

// Partially sorts keys[low..high], and `order` in the same way, so that no key before `rank` exceeds a key after it.
void select(std::span<double> keys, std::span<std::int32_t> order, std::ptrdiff_t low, std::ptrdiff_t high,
            std::ptrdiff_t rank) {
  double* const key = keys.data();
  std::int32_t* const index = order.data();
  std::int64_t seed = 1;
  while (low < high) {
    // Pivots come from a fixed pseudorandom sequence, so that common orders of insertion do not make the selection
    // slow.
    seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF;
    const std::ptrdiff_t width = high - low + 1;
    const double a = key[low + seed % width];
    const double b = key[low + (seed >> 8) % width];
    const double c = key[(low + high) >> 1];
    const double pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
    std::ptrdiff_t i = low;
    std::ptrdiff_t j = high;
    while (i <= j) {
      while (key[i] < pivot) {
        ++i;
      }
      while (key[j] > pivot) {
        --j;
      }
      if (i <= j) {
        std::swap(key[i], key[j]);
        std::swap(index[i], index[j]);
        ++i;
        --j;
      }
    }
    // Keys between j and i equal the pivot. If `rank` is among them, the selection is complete.
    if (rank <= j) {
      high = j;
    } else if (rank >= i) {
      low = i;
    } else {
      return;
    }
  }
}

}  // namespace

// Builds a balanced tree or subtree.
class KdTree::Builder {
 public:
  // Builds over the rows of an array, with the first `leaves` leaves and inner nodes.
  Builder(std::span<const double> rows, std::size_t dimension, std::size_t leaves)
      : Builder(rows.size() / dimension, dimension, leaves) {
    rows_ = rows;
    std::iota(positions_.begin(), positions_.end(), 0);
    for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
      leaves_.push_back(leaf);
      inner_.push_back(leaf);
    }
  }

  // Builds over the points below a node, with the leaves and inner nodes below it, from left to right.
  Builder(const KdTree& tree, NodeId top)
      : Builder(tree.points_below(top), tree.dimension_, static_cast<std::size_t>(tree.leaves_below(top)) + 1) {
    copied_rows_.reserve(order_.size() * dimension_);
    positions_.clear();
    const NodeId end = tree.node(top).parent;
    NodeId previous = end;
    for (NodeId id = top; id != end;) {
      const Node& node = tree.node(id);
      NodeId next = node.parent;
      if (is_leaf(id)) {
        copy_leaf(tree, number_of(id));
      } else if (previous == node.parent) {
        next = node.children[0];
      } else if (previous == node.children[0]) {
        inner_.push_back(number_of(id));
        next = node.children[1];
      }
      previous = id;
      id = next;
    }
    rows_ = copied_rows_;
  }

  void add_leaf(std::size_t leaf) {
    leaves_.push_back(leaf);
    inner_.push_back(leaf - 1);
  }

  // Distributes the points evenly over the leaves, sets the parent of the root to `parent`, and returns the root. Does
  // not allocate.
  NodeId build(KdTree& tree, NodeId parent) {
    std::array<Part, max_depth> waiting;
    waiting[0] = {0, order_.size(), 0, leaves_.size(), parent};
    for (std::size_t depth = 1; depth > 0;) {
      const Part part = waiting[--depth];
      const NodeId id = root_of(part.first_leaf, part.leaves);
      tree.node(id).parent = part.parent;
      if (part.leaves == 1) {
        fill_leaf(tree, id, part);
      } else {
        const std::size_t half = part.leaves / 2;
        const std::size_t rank = split(tree, id, part);
        waiting[depth++] = {part.start, rank, part.first_leaf, half, id};
        waiting[depth++] = {rank, part.stop, part.first_leaf + half, part.leaves - half, id};
        split_nodes_.push_back(id);
      }
    }
    for (std::size_t i = split_nodes_.size(); i-- > 0;) {  // children before their parents
      merge_children(tree, split_nodes_[i]);
    }
    return root_of(0, leaves_.size());
  }

 private:
  // A range of points, the range of leaves that receive them, and their parent.
  struct Part {
    std::size_t start = 0;
    std::size_t stop = 0;
    std::size_t first_leaf = 0;
    std::size_t leaves = 0;
    NodeId parent = no_node;
  };

  Builder(std::size_t count, std::size_t dimension, std::size_t leaves)
      : dimension_(dimension), positions_(count), order_(count), keys_(count) {
    std::iota(order_.begin(), order_.end(), 0);
    leaves_.reserve(leaves);
    inner_.reserve(leaves);
    split_nodes_.reserve(leaves);
  }

  void copy_leaf(const KdTree& tree, std::size_t leaf) {
    const std::span<const double> points = tree.leaf_points(leaf);
    const std::span<const std::int32_t> positions = tree.leaf_positions(leaf);
    leaves_.push_back(leaf);
    copied_rows_.insert(copied_rows_.end(), points.begin(), points.end());
    positions_.insert(positions_.end(), positions.begin(), positions.end());
  }

  // Returns the root of a range of leaves. Inner nodes are ordered like the gaps between leaves.
  NodeId root_of(std::size_t first_leaf, std::size_t leaves) const {
    return leaves == 1 ? leaf_node(leaves_[first_leaf]) : inner_node(inner_[first_leaf + leaves / 2 - 1]);
  }

  const double* row(std::int32_t point) const { return rows_.data() + static_cast<std::size_t>(point) * dimension_; }

  std::span<const std::int32_t> order_of(const Part& part) const {
    return std::span(order_).subspan(part.start, part.stop - part.start);
  }

  // Returns the ranges of every `step`-th point along up to four coordinates.
  std::pair<simd::Double4, simd::Double4> ranges(std::span<const std::int32_t> order, std::size_t step,
                                                 std::size_t axis, std::size_t axes) const {
    simd::Double4 low = simd::load_first(row(order[0]) + axis, axes);
    simd::Double4 high = low;
    for (std::size_t i = step; i < order.size(); i += step) {
      const simd::Double4 values = simd::load_first(row(order[i]) + axis, axes);
      low = simd::min(values, low);
      high = simd::max(values, high);
    }
    return {low, high};
  }

  // Returns the axis along which the points have the largest range. Large sets of points are sampled.
  std::size_t widest_axis(std::span<const std::int32_t> order) const {
    std::size_t widest = 0;
    double width = -1.0;
    for (std::size_t axis = 0; axis < dimension_; axis += 4) {
      const std::size_t axes = std::min<std::size_t>(4, dimension_ - axis);
      const auto [low, high] = ranges(order, 1 + order.size() / axis_sample, axis, axes);
      for (std::size_t i = 0; i < axes; ++i) {
        if (high[i] - low[i] > width) {
          widest = axis + i;
          width = high[i] - low[i];
        }
      }
    }
    return widest;
  }

  // Splits a part between two children and returns the start of the second one.
  std::size_t split(KdTree& tree, NodeId id, const Part& part) {
    const std::size_t half = part.leaves / 2;
    const std::size_t rank = part.start + (part.stop - part.start) * half / part.leaves;
    const std::size_t axis = widest_axis(order_of(part));
    for (std::size_t i = part.start; i < part.stop; ++i) {
      keys_[i] = row(order_[i])[axis];
    }
    select(keys_, order_, static_cast<std::ptrdiff_t>(part.start), static_cast<std::ptrdiff_t>(part.stop) - 1,
           static_cast<std::ptrdiff_t>(rank));
    Node& node = tree.node(id);
    node.split = keys_[rank];
    node.axis = static_cast<std::int32_t>(axis);
    node.size = static_cast<std::int32_t>(part.leaves);
    node.children = {root_of(part.first_leaf, half), root_of(part.first_leaf + half, part.leaves - half)};
    return rank;
  }

  void fill_leaf(KdTree& tree, NodeId id, const Part& part) {
    const std::size_t leaf = number_of(id);
    const std::span<const std::int32_t> order = order_of(part);
    const std::span<Interval> box = tree.box(id);
    for (std::size_t k = 0; k < dimension_; k += 4) {
      const std::size_t axes = std::min<std::size_t>(4, dimension_ - k);
      const auto [low, high] = ranges(order, 1, k, axes);
      for (std::size_t i = 0; i < axes; ++i) {
        box[k + i] = {low[i], high[i]};
      }
    }
    double* const points = tree.points_.data() + leaf * leaf_size * dimension_;
    for (std::size_t lane = 0; lane < order.size(); ++lane) {
      std::copy_n(row(order[lane]), dimension_, points + lane * dimension_);
    }
    Node& node = tree.node(id);
    node.size = static_cast<std::int32_t>(order.size());
    node.earliest = std::numeric_limits<std::int32_t>::max();
    for (std::size_t lane = 0; lane < order.size(); ++lane) {
      const std::int32_t position = positions_[static_cast<std::size_t>(order[lane])];
      tree.positions_[leaf * leaf_size + lane] = position;
      node.earliest = std::min(node.earliest, position);
    }
    tree.codes_.encode_leaf(leaf, tree.leaf_points(leaf), box);
    tree.leaf_boxes_.set(leaf, box);
  }

  static void merge_children(KdTree& tree, NodeId id) {
    Node& node = tree.node(id);
    const auto [left, right] = node.children;
    const std::span<Interval> box = tree.box(id);
    const std::span<const Interval> left_box = tree.box(left);
    const std::span<const Interval> right_box = tree.box(right);
    for (std::size_t k = 0; k < box.size(); ++k) {
      box[k].low = std::min(left_box[k].low, right_box[k].low);
      box[k].high = std::max(left_box[k].high, right_box[k].high);
    }
    node.earliest = std::min(tree.node(left).earliest, tree.node(right).earliest);
  }

  std::size_t dimension_;
  std::vector<double> copied_rows_;
  std::span<const double> rows_;
  std::vector<std::int32_t> positions_;
  std::vector<std::int32_t> order_;
  std::vector<double> keys_;
  std::vector<std::size_t> leaves_;
  std::vector<std::size_t> inner_;
  std::vector<NodeId> split_nodes_;
};

KdTree::KdTree(std::size_t dimension)
    : dimension_(checked_dimension(dimension)), codes_(dimension), leaf_boxes_(dimension) {
  resize_leaves(1);
}

KdTree::KdTree(std::span<const double> points, std::size_t dimension)
    : dimension_(checked_dimension(dimension)), codes_(dimension), leaf_boxes_(dimension) {
  if (points.size() % dimension != 0) {
    throw std::invalid_argument("points must have a multiple of " + std::to_string(dimension) + " entries, got " +
                                std::to_string(points.size()));
  }
  const std::size_t count = points.size() / dimension;
  const std::size_t leaves = std::max<std::size_t>(1, (count + bulk_fill - 1) / bulk_fill);
  resize_leaves(leaves);
  if (count > 0) {
    Builder builder(points, dimension, leaves);
    root_ = builder.build(*this, no_node);
    leaf_count_ = leaves;
    size_ = count;
  }
}

std::size_t KdTree::size() const { return size_; }

std::size_t KdTree::dimension() const { return dimension_; }

std::size_t KdTree::leaf_count() const { return leaf_count_; }

std::size_t KdTree::depth() const {
  std::size_t deepest = 0;
  for (std::size_t leaf = 0; leaf < leaf_count_; ++leaf) {
    std::size_t splits = 0;
    for (NodeId id = leaf_node(leaf); node(id).parent != no_node; id = node(id).parent) {
      splits += 1;
    }
    deepest = std::max(deepest, splits);
  }
  return deepest;
}

std::size_t KdTree::memory_bytes() const {
  return nodes_.capacity() * sizeof(Node) + boxes_.capacity() * sizeof(Interval) + points_.capacity() * sizeof(double) +
         positions_.capacity() * sizeof(std::int32_t) + codes_.memory_bytes() + leaf_boxes_.memory_bytes();
}

std::vector<double> KdTree::points() const {
  std::vector<double> rows(size_ * dimension_);
  for (std::size_t leaf = 0; leaf < leaf_count_; ++leaf) {
    const std::span<const double> points = leaf_points(leaf);
    const std::span<const std::int32_t> positions = leaf_positions(leaf);
    for (std::size_t lane = 0; lane < positions.size(); ++lane) {
      const auto row = static_cast<std::size_t>(positions[lane]) * dimension_;
      std::copy_n(points.begin() + static_cast<std::ptrdiff_t>(lane * dimension_), dimension_,
                  rows.begin() + static_cast<std::ptrdiff_t>(row));
    }
  }
  return rows;
}

std::vector<double> KdTree::points(std::span<const std::int64_t> positions) const {
  std::vector<std::int64_t> slots(size_);
  for (std::size_t leaf = 0; leaf < leaf_count_; ++leaf) {
    const std::span<const std::int32_t> held = leaf_positions(leaf);
    for (std::size_t lane = 0; lane < held.size(); ++lane) {
      slots[static_cast<std::size_t>(held[lane])] = static_cast<std::int64_t>(leaf * leaf_size + lane);
    }
  }
  std::vector<double> rows(positions.size() * dimension_);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const std::int64_t slot = slots[static_cast<std::size_t>(positions[i])];
    std::copy_n(points_.begin() + static_cast<std::ptrdiff_t>(dimension_) * slot, dimension_,
                rows.begin() + static_cast<std::ptrdiff_t>(i * dimension_));
  }
  return rows;
}

std::span<const double> KdTree::coordinates(const Neighbor& neighbor) const {
  return std::span(points_).subspan(static_cast<std::size_t>(neighbor.slot) * dimension_, dimension_);
}

std::span<const std::int32_t> KdTree::leaf_positions(std::size_t leaf) const {
  return std::span(positions_).subspan(leaf * leaf_size, static_cast<std::size_t>(node(leaf_node(leaf)).size));
}

void KdTree::make_room(std::span<const double> point) {
  assert(point.size() == dimension_);
  for (NodeId leaf = leaf_of(point); leaf_positions(number_of(leaf)).size() == leaf_size; leaf = leaf_of(point)) {
    rebuild_around(leaf);
  }
}

void KdTree::insert(std::span<const double> point) {
  make_room(point);
  insert_into_leaf(leaf_of(point), point);
}

// Resizes all arrays to a number of leaves. All operations that may throw come first, so that an exception leaves the
// tree unchanged.
void KdTree::resize_leaves(std::size_t leaves) {
  if (leaves > max_leaves) {
    throw std::length_error("a kd-tree has at most " + std::to_string(max_leaves) + " leaves of " +
                            std::to_string(leaf_size) + " points");
  }
  nodes_.reserve(2 * leaves);
  boxes_.reserve(2 * leaves * dimension_);
  points_.reserve(leaves * leaf_size * dimension_);
  positions_.reserve(leaves * leaf_size);
  codes_.reserve(leaves);
  leaf_boxes_.reserve(leaves);
  nodes_.resize(2 * leaves);
  boxes_.resize(2 * leaves * dimension_);
  points_.resize(leaves * leaf_size * dimension_);
  positions_.resize(leaves * leaf_size, -1);
  codes_.resize(leaves);
  leaf_boxes_.resize(leaves);
}

KdTree::NodeId KdTree::leaf_of(std::span<const double> point) const {
  NodeId id = root_;
  while (!is_leaf(id)) {
    const Node& inner = node(id);
    id = inner.children[point[static_cast<std::size_t>(inner.axis)] >= inner.split ? 1 : 0];
  }
  return id;
}

// Inserts a point into a leaf that is not full.
void KdTree::insert_into_leaf(NodeId id, std::span<const double> point) {
  const std::size_t leaf = number_of(id);
  const std::size_t lane = append_to_leaf(leaf, point);
  bool changed = extend_box(id, point);
  if (changed) {
    leaf_boxes_.set(leaf, box(id));
  }
  const bool may_get_codes = changed && !codes_.has_codes(leaf);  // a wider grid may have cells that doubles resolve
  if (lane == 0 || may_get_codes || !codes_.encode(leaf, lane, point)) {
    codes_.encode_leaf(leaf, leaf_points(leaf), box(id));
  }
  // If a box already contains the point, so do the boxes of its ancestors.
  while (changed && node(id).parent != no_node) {
    id = node(id).parent;
    changed = extend_box(id, point);
  }
}

// Writes coordinates and position to the next free lane of a leaf and returns the lane.
std::size_t KdTree::append_to_leaf(std::size_t leaf, std::span<const double> point) {
  Node& owner = node(leaf_node(leaf));
  const auto lane = static_cast<std::size_t>(owner.size);
  const auto position = static_cast<std::int32_t>(size_);
  const std::size_t slot = leaf * leaf_size + lane;
  std::ranges::copy(point, points_.begin() + static_cast<std::ptrdiff_t>(slot * dimension_));
  positions_[slot] = position;
  owner.size += 1;
  owner.earliest = std::min(owner.earliest, position);
  size_ += 1;
  return lane;
}

// Extends a box to contain a point and returns whether the box has changed.
bool KdTree::extend_box(NodeId id, std::span<const double> point) {
  const std::span<Interval> sides = box(id);
  bool changed = false;
  for (std::size_t k = 0; k < sides.size(); ++k) {
    if (point[k] < sides[k].low) {
      sides[k].low = point[k];
      changed = true;
    }
    if (point[k] > sides[k].high) {
      sides[k].high = point[k];
      changed = true;
    }
  }
  return changed;
}

std::int32_t KdTree::leaves_below(NodeId id) const { return is_leaf(id) ? 1 : node(id).size; }

// Returns the highest ancestor of a leaf that has at most `leaves_per_group` leaves.
KdTree::NodeId KdTree::group_of(NodeId leaf) const {
  NodeId top = leaf;
  for (NodeId above = node(top).parent; above != no_node && leaves_below(above) <= leaves_per_group;) {
    top = above;
    above = node(top).parent;
  }
  return top;
}

// Returns the highest node that is unbalanced after `top` gets another leaf, or `top` if all are balanced.
KdTree::NodeId KdTree::highest_unbalanced(NodeId top) const {
  NodeId highest = top;
  std::int32_t leaves = leaves_below(top) + 1;
  for (NodeId child = top; node(child).parent != no_node; child = node(child).parent) {
    const NodeId parent = node(child).parent;
    const auto [left, right] = node(parent).children;
    const std::int32_t sibling_leaves = leaves_below(left == child ? right : left);
    if (std::max(leaves, sibling_leaves) > unbalanced_share * (leaves + sibling_leaves)) {
      highest = parent;
    }
    leaves += sibling_leaves;
  }
  return highest;
}

std::size_t KdTree::points_below(NodeId top) const {
  if (is_leaf(top)) {
    return static_cast<std::size_t>(node(top).size);
  }
  const auto [left, right] = node(top).children;
  return points_below(left) + points_below(right);
}

KdTree::Rebuild KdTree::plan_rebuild(NodeId full_leaf) const {
  const NodeId group = group_of(full_leaf);
  if (points_below(group) <= group_fill * static_cast<std::size_t>(leaves_below(group))) {
    return {group, false};
  }
  return {highest_unbalanced(group), true};
}

void KdTree::rebuild_around(NodeId full_leaf) {
  const auto [top, adds_leaf] = plan_rebuild(full_leaf);
  const std::size_t capacity = nodes_.size() / 2;
  if (adds_leaf && leaf_count_ == capacity) {
    // With one coordinate, most memory is not coordinates, so memory grows in smaller steps.
    resize_leaves(std::min(capacity + 1 + capacity / (dimension_ > 1 ? 8 : 16), std::max(capacity + 1, max_leaves)));
  }
  Builder builder(*this, top);
  // Nothing below throws.
  const NodeId parent = node(top).parent;
  if (adds_leaf) {
    builder.add_leaf(leaf_count_);
    leaf_count_ += 1;
    for (NodeId above = parent; above != no_node; above = node(above).parent) {
      node(above).size += 1;
    }
  }
  replace_child(parent, top, builder.build(*this, parent));
}

void KdTree::replace_child(NodeId parent, NodeId old_child, NodeId new_child) {
  if (parent == no_node) {
    root_ = new_child;
  } else {
    std::array<NodeId, 2>& children = node(parent).children;
    children[children[0] == old_child ? 0 : 1] = new_child;
  }
}

}  // namespace ellipack
