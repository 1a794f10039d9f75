// Search in the kd-tree.
//
// A search descends to the leaf of the query. At each split it pushes the other subtree on a stack, with a lower bound
// on the squared distance to it. It then pops subtrees as long as they may contain a point within the limit. There are
// two lower bounds: the distance to the splitting plane, and the distance to the box of a node. Both are summed like
// distances, coordinate by coordinate, over differences that are not larger. Rounding is monotone, so neither bound
// exceeds the computed distance of any point in the subtree, and no margin is needed.
//
// A search that has reached its visit limit scans the boxes of all leaves instead, 64 at a time in memory order. If
// most leaves are near, this is a scan of all points; if few are, it costs little.

#include <algorithm>
#include <cassert>

#include "kd_tree.hpp"
#include "neighbor_lists.hpp"
#include "simd.hpp"

namespace ellipack {

namespace {

constexpr std::size_t max_visits = 64;
constexpr std::size_t max_scanned_leaves = 512;   // in smaller trees, a search with a limit scans all boxes
constexpr std::size_t max_scanned_dimension = 2;  // up to this dimension, computing all distances is faster than codes
constexpr double infinity = std::numeric_limits<double>::infinity();

// Returns the squared distances of four points of a leaf, one in each lane. Each is summed from the first coordinate to
// the last.
simd::Double4 measure_four(std::span<const double> query, const double* leaf_points,
                           const std::array<std::size_t, 4>& lanes) {
  const std::size_t dimension = query.size();
  const double* const a = leaf_points + lanes[0] * dimension;
  const double* const b = leaf_points + lanes[1] * dimension;
  const double* const c = leaf_points + lanes[2] * dimension;
  const double* const d = leaf_points + lanes[3] * dimension;
  simd::Double4 total{};
  const auto add = [&](std::size_t k, simd::Double4 coordinates) {
    const simd::Double4 difference = query[k] - coordinates;
    total += difference * difference;
  };
  std::size_t k = 0;
  for (; k + 4 <= dimension; k += 4) {
    auto first = simd::load<simd::Double4>(a + k);
    auto second = simd::load<simd::Double4>(b + k);
    auto third = simd::load<simd::Double4>(c + k);
    auto fourth = simd::load<simd::Double4>(d + k);
    simd::transpose(first, second, third, fourth);
    add(k, first);
    add(k + 1, second);
    add(k + 2, third);
    add(k + 3, fourth);
  }
  for (; k < dimension; ++k) {
    add(k, simd::Double4{a[k], b[k], c[k], d[k]});
  }
  return total;
}

// Computes the squared distances of the given lanes of a leaf.
void measure(std::span<const double> query, const double* leaf_points, LaneMask lanes,
             std::array<double, lane_count>& distances) {
  while (lanes != 0) {
    std::array<std::size_t, 4> four;
    four.fill(lowest_lane(lanes));
    lanes = without_lowest(lanes);
    for (std::size_t i = 1; i < 4 && lanes != 0; ++i) {
      four[i] = lowest_lane(lanes);
      lanes = without_lowest(lanes);
    }
    const simd::Double4 measured = measure_four(query, leaf_points, four);
    for (std::size_t i = 0; i < 4; ++i) {
      distances[four[i]] = measured[i];
    }
  }
}

// Returns the squared distances of four consecutive points in one or two dimensions.
template <std::size_t dimension>
simd::Double4 measure_next_four(std::span<const double> query, const double* points) {
  const auto first = simd::load<simd::Double4>(points);
  if constexpr (dimension == 1) {
    const simd::Double4 difference = query[0] - first;
    return difference * difference;
  } else {
    const auto second = simd::load<simd::Double4>(points + 4);
    const simd::Double4 x = query[0] - __builtin_shufflevector(first, second, 0, 2, 4, 6);
    const simd::Double4 y = query[1] - __builtin_shufflevector(first, second, 1, 3, 5, 7);
    return x * x + y * y;
  }
}

// The smallest squared distance to the points of a leaf, and the lanes that have it.
struct Smallest {
  double squared_distance;
  LaneMask lanes;
};

template <std::size_t dimension>
Smallest smallest_distance(std::span<const double> query, std::span<const double> points) {
  const std::size_t size = points.size() / dimension;
  const std::size_t whole = size / 4 * 4;
  std::array<double, lane_count> distances;
  auto minimum = simd::splat<simd::Double4>(infinity);
  for (std::size_t lane = 0; lane < whole; lane += 4) {
    const simd::Double4 four = measure_next_four<dimension>(query, points.data() + lane * dimension);
    simd::store(distances.data() + lane, four);
    minimum = simd::min(minimum, four);
  }
  double smallest = std::min({minimum[0], minimum[1], minimum[2], minimum[3]});
  for (std::size_t lane = whole; lane < size; ++lane) {
    distances[lane] = squared_distance(query, points.subspan(lane * dimension, dimension));
    smallest = std::min(smallest, distances[lane]);
  }
  LaneMask lanes = 0;
  for (std::size_t lane = 0; lane < whole; lane += 4) {
    const auto four = simd::load<simd::Double4>(distances.data() + lane);
    lanes |= static_cast<LaneMask>(simd::at_most(four, simd::splat<simd::Double4>(smallest))) << lane;
  }
  for (std::size_t lane = whole; lane < size; ++lane) {
    lanes |= static_cast<LaneMask>(distances[lane] <= smallest) << lane;
  }
  return {smallest, lanes};
}

}  // namespace

// State of a search: the stack of subtrees and the visited leaves.
class KdTree::Search {
 public:
  Search(const KdTree& tree, std::span<const double> query, std::size_t wanted)
      : tree_(tree), query_(query), visits_left_(std::min(max_visits, 4 + wanted / 8 + tree.leaf_count_ / 128)) {}

  Neighbor nearest() {
    NodeId id = descend(tree_.root_);
    Neighbor best = nearest_in_leaf(number_of(id));
    for (;;) {
      id = next_leaf(id, {best.squared_distance, best.position});
      if (id == no_node) {
        return best;
      }
      update_nearest(number_of(id), near_lanes(id, best.squared_distance), best);
    }
  }

  template <typename Found>
  void collect(Found& found) {
    NodeId id = no_node;
    if (found.bound().squared_distance < infinity && tree_.leaf_count_ <= max_scanned_leaves) {
      visits_left_ = 0;
      id = next_near_leaf(found.bound().squared_distance);
    } else {
      id = descend(tree_.root_);
    }
    while (id != no_node) {
      collect_leaf(id, found);
      id = next_leaf(id, found.bound());
    }
    found.finish();
  }

 private:
  struct Subtree {
    double squared_distance;
    NodeId node;
  };

  Neighbor neighbor_at(std::size_t leaf, std::size_t lane, double squared_distance) const {
    const std::size_t slot = leaf * leaf_size + lane;
    return {squared_distance, tree_.positions_[slot], static_cast<std::int32_t>(slot)};
  }

  Neighbor nearest_in_leaf(std::size_t leaf) const {
    const std::span<const double> points = tree_.leaf_points(leaf);
    if (query_.size() <= max_scanned_dimension) {
      const Smallest smallest =
          query_.size() == 1 ? smallest_distance<1>(query_, points) : smallest_distance<2>(query_, points);
      Neighbor best = neighbor_at(leaf, lowest_lane(smallest.lanes), smallest.squared_distance);
      update_nearest(leaf, without_lowest(smallest.lanes), best);
      return best;
    }
    const auto guess = tree_.codes_.guess_nearest(leaf, points, query_);
    Neighbor best = neighbor_at(leaf, guess.lane, guess.squared_distance);
    update_nearest(leaf, guess.others, best);
    return best;
  }

  LaneMask near_lanes(NodeId id, double limit) const {
    return tree_.codes_.near(number_of(id), static_cast<std::size_t>(tree_.node(id).size), query_,
                             distance_bound(limit));
  }

  void update_nearest(std::size_t leaf, LaneMask near, Neighbor& best) const {
    const std::span<const double> points = tree_.leaf_points(leaf);
    for (; near != 0; near = without_lowest(near)) {
      const std::size_t lane = lowest_lane(near);
      const double distance = squared_distance(query_, points.subspan(lane * query_.size(), query_.size()));
      // Read the position only if needed: it is probably not in the cache.
      if (distance < best.squared_distance ||
          (distance == best.squared_distance && tree_.positions_[leaf * leaf_size + lane] < best.position)) {
        best = neighbor_at(leaf, lane, distance);
      }
    }
  }

  template <typename Found>
  void collect_leaf(NodeId id, Found& found) const {
    const std::size_t leaf = number_of(id);
    LaneMask near = near_lanes(id, found.bound().squared_distance);
    std::array<double, lane_count> distances;
    measure(query_, tree_.leaf_points(leaf).data(), near, distances);
    for (; near != 0; near = without_lowest(near)) {
      const std::size_t lane = lowest_lane(near);
      // Read the position only if needed: it is probably not in the cache.
      if (distances[lane] <= found.bound().squared_distance) {
        const Neighbor neighbor = neighbor_at(leaf, lane, distances[lane]);
        if (found.bound().admits(neighbor)) {
          found.add(neighbor);
        }
      }
    }
  }

  // Descends to the leaf on the side of the query and pushes the other subtrees on the stack.
  NodeId descend(NodeId id) {
    while (!is_leaf(id)) {
      id = step_down(id);
    }
    return id;
  }

  NodeId step_down(NodeId id) {
    const Node& inner = tree_.node(id);
    const double coordinate = query_[static_cast<std::size_t>(inner.axis)];
    const double gap = coordinate - inner.split;
    const std::size_t side = coordinate >= inner.split ? 1 : 0;  // independent of `gap`, which takes longer
    stack_[stack_size_++] = {gap * gap, inner.children[1 - side]};
    return inner.children[side];
  }

  // Returns the next leaf that may contain a point before the bound, or no_node.
  NodeId next_leaf(NodeId visited, const Bound& bound) {
    if (visits_left_ > 0) {
      visited_[visited_size_++] = number_of(visited);
      // Boxes can be scanned only with a finite limit. Without one, the search continues on the stack while `visited_`
      // has space.
      const bool limited = bound.squared_distance < infinity;
      visits_left_ = limited ? visits_left_ - 1 : std::min(visits_left_, max_visits - visited_size_);
      const NodeId id = next_on_stack(bound);
      if (visits_left_ > 0 || id == no_node) {
        return id;
      }
    }
    return next_near_leaf(bound.squared_distance);
  }

  // Pops subtrees until one has a leaf that may contain a point before the bound.
  NodeId next_on_stack(const Bound& bound) {
    while (stack_size_ > 0) {
      const Subtree side = stack_[--stack_size_];
      if (side.squared_distance > bound.squared_distance) {
        continue;
      }
      NodeId id = side.node;
      while (may_hold(id, bound)) {
        if (is_leaf(id)) {
          return id;
        }
        id = step_down(id);
      }
    }
    return no_node;
  }

  bool may_hold(NodeId id, const Bound& bound) const {
    const double total = box_distance(id, bound.squared_distance);
    return total < bound.squared_distance ||
           (total == bound.squared_distance && tree_.node(id).earliest <= bound.position);
  }

  // Returns a lower bound on the squared distance to the points of a node. It uses all coordinates of a leaf, but only
  // the first few of an inner node, because most inner nodes are near enough anyway. It stops above the limit.
  double box_distance(NodeId id, double limit) const {
    const std::span<const Interval> box = tree_.box(id);
    const std::size_t end = is_leaf(id) ? box.size() : std::min(filter_step, box.size());
    double total = 0.0;
    for (std::size_t start = 0; start < end && total <= limit; start += filter_step) {
      const std::size_t stop = std::min(end, start + filter_step);
      for (std::size_t k = start; k < stop; ++k) {  // no early exit: its branch would often be mispredicted
        const double gap = query_[k] - std::min(std::max(query_[k], box[k].low), box[k].high);
        total += gap * gap;
      }
    }
    return total;
  }

  // Returns the next leaf in memory order that was not visited before and may contain a point within the limit.
  NodeId next_near_leaf(double limit) {
    if (group_leaves_ == 0) {
      const float largest = LeafBoxes::largest_sum(limit, vector_length(query_), query_.size());
      while (group_leaves_ == 0 && next_group_ * lane_count < tree_.leaf_count_) {
        const std::size_t size = std::min(lane_count, tree_.leaf_count_ - next_group_ * lane_count);
        group_leaves_ = tree_.leaf_boxes_.near(next_group_, size, query_, largest) & ~visited_in_group(next_group_);
        next_group_ += 1;
      }
    }
    if (group_leaves_ == 0) {
      return no_node;
    }
    const std::size_t leaf = (next_group_ - 1) * lane_count + lowest_lane(group_leaves_);
    group_leaves_ = without_lowest(group_leaves_);
    if (group_leaves_ != 0) {
      tree_.codes_.prefetch((next_group_ - 1) * lane_count + lowest_lane(group_leaves_));
    }
    return leaf_node(leaf);
  }

  LaneMask visited_in_group(std::size_t group) const {
    LaneMask lanes = 0;
    for (std::size_t i = 0; i < visited_size_; ++i) {
      if (visited_[i] / lane_count == group) {
        lanes |= LaneMask{1} << (visited_[i] % lane_count);
      }
    }
    return lanes;
  }

  const KdTree& tree_;
  std::span<const double> query_;
  std::size_t visits_left_;
  std::size_t stack_size_ = 0;
  std::size_t visited_size_ = 0;
  std::size_t next_group_ = 0;
  LaneMask group_leaves_ = 0;
  std::array<Subtree, max_depth> stack_;
  std::array<std::size_t, max_visits> visited_;
};

Neighbor KdTree::nearest(std::span<const double> query) const {
  assert(query.size() == dimension_);
  return size_ == 0 ? Neighbor{} : Search(*this, query, 1).nearest();
}

std::size_t KdTree::k_nearest(std::span<const double> query, double limit, std::span<Neighbor> found) const {
  assert(query.size() == dimension_);
  if (size_ == 0 || found.empty()) {
    return 0;
  }
  Search search(*this, query, found.size());
  if (found.size() <= max_sorted_list) {
    SortedList list(found, limit);
    search.collect(list);
    return list.size();
  }
  Heap heap(found, limit);
  search.collect(heap);
  return heap.size();
}

std::vector<Neighbor> KdTree::within(std::span<const double> query, double limit) const {
  assert(query.size() == dimension_);
  AllWithin found(limit);
  if (size_ > 0) {
    Search(*this, query, size_).collect(found);
  }
  return found.release();
}

}  // namespace ellipack
