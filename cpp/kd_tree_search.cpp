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
#include "simd.hpp"

namespace ellipack {

namespace {

constexpr std::size_t max_visits = 64;
constexpr std::size_t max_scanned_leaves = 512;  // in smaller trees, a search with a limit scans all boxes
constexpr std::size_t max_sorted_list = 64;      // for at most this many neighbors, a sorted list is faster than a heap
constexpr std::size_t max_scanned_dimension = 2;  // up to this dimension, computing all distances is faster than codes
constexpr std::int64_t no_position_limit = std::int64_t{1} << 62;
constexpr double infinity = std::numeric_limits<double>::infinity();

// The order of results: by squared distance, then by position.
bool comes_before(const Neighbor& one, const Neighbor& other) {
  return one.squared_distance < other.squared_distance ||
         (one.squared_distance == other.squared_distance && one.position < other.position);
}

// An upper bound on results in the order of `comes_before`.
struct Bound {
  double squared_distance;
  std::int64_t position;

  bool admits(const Neighbor& neighbor) const {
    return neighbor.squared_distance < squared_distance ||
           (neighbor.squared_distance == squared_distance && neighbor.position < position);
  }
};

// The nearest points so far in a list, which is sorted once it is full. Distances and points are in separate arrays, so
// that an insertion moves a vector of entries at a time.
class SortedList {
 public:
  SortedList(std::span<Neighbor> buffer, double limit)
      : buffer_(buffer), end_((buffer.size() + lanes - 1) / lanes * lanes) {
    std::fill_n(distances_.begin(), lanes, -infinity);
    std::fill_n(points_.begin(), lanes, 0);
    std::fill_n(distances_.begin() + lanes, end_, limit);
    std::fill_n(points_.begin() + lanes, end_, no_point);
  }

  // The last entry, or the limit if the list is not full.
  Bound bound() const { return {distances_[lanes + buffer_.size() - 1], points_[lanes + buffer_.size() - 1] >> 32}; }
  std::size_t size() const { return size_; }

  void add(const Neighbor& neighbor) {
    if (size_ == buffer_.size()) {
      insert(neighbor);
      return;
    }
    distances_[lanes + size_] = neighbor.squared_distance;
    points_[lanes + size_] = point_of(neighbor);
    size_ += 1;
    if (size_ == buffer_.size()) {
      sort();
    }
  }

  void finish() {
    if (size_ < buffer_.size()) {
      sort();
    }
    for (std::size_t i = 0; i < size_; ++i) {
      const std::int64_t point = points_[lanes + i];
      buffer_[i] = {distances_[lanes + i], static_cast<std::int32_t>(point >> 32), static_cast<std::int32_t>(point)};
    }
  }

 private:
  static constexpr std::size_t lanes = simd::register_bytes / sizeof(double);
  static constexpr std::int64_t no_point = std::numeric_limits<std::int64_t>::max();  // after all points
  using Distances = simd::Vec<double, lanes>;
  using Points = simd::Vec<std::int64_t, lanes>;

  // Position and slot in one number, which is ordered by position.
  static std::int64_t point_of(const Neighbor& neighbor) {
    return std::int64_t{neighbor.position} << 32 | neighbor.slot;
  }

  static Points are_before(Distances distances, Points points, Distances other_distances, Points other_points) {
    return (distances < other_distances) | ((distances == other_distances) & (points < other_points));
  }

  // Sorts the entries: the place of each is the number of those before it.
  void sort() {
    const auto distances = distances_;
    const auto points = points_;
    std::array<std::int64_t, max_sorted_list> places;
    for (std::size_t at = 0; at < size_; at += lanes) {
      const auto own_distances = simd::load<Distances>(distances.data() + lanes + at);
      const auto own_points = simd::load<Points>(points.data() + lanes + at);
      Points before{};
      for (std::size_t i = lanes; i < lanes + size_; ++i) {
        before -=
            are_before(simd::splat<Distances>(distances[i]), simd::splat<Points>(points[i]), own_distances, own_points);
      }
      simd::store(places.data() + at, before);
    }
    for (std::size_t i = 0; i < size_; ++i) {
      distances_[lanes + static_cast<std::size_t>(places[i])] = distances[lanes + i];
      points_[lanes + static_cast<std::size_t>(places[i])] = points[lanes + i];
    }
  }

  // Inserts a point into the full, sorted list; the last entry is lost.
  void insert(const Neighbor& neighbor) {
    const auto distance = simd::splat<Distances>(neighbor.squared_distance);
    const auto point = simd::splat<Points>(point_of(neighbor));
    auto distances = simd::load<Distances>(distances_.data() + end_);
    auto points = simd::load<Points>(points_.data() + end_);
    for (std::size_t at = end_; at > 0 && may_change(at, neighbor); at -= lanes) {
      const auto previous_distances = simd::load<Distances>(distances_.data() + at - lanes);
      const auto previous_points = simd::load<Points>(points_.data() + at - lanes);
      const Distances left_distances = simd::shift_in(previous_distances, distances);
      const Points left_points = simd::shift_in(previous_points, points);
      const Points stays = are_before(distances, points, distance, point);
      const Points moves = are_before(distance, point, left_distances, left_points);
      simd::store(distances_.data() + at, simd::min(distances, simd::max(left_distances, distance)));
      simd::store(points_.data() + at, stays ? points : (moves ? left_points : point));
      distances = previous_distances;
      points = previous_points;
    }
  }

  // Returns whether an insertion may change the vector of entries at an index. With eight lanes, it is faster to pass
  // over the whole list: the branch where to stop would often be mispredicted.
  bool may_change(std::size_t at, const Neighbor& neighbor) const {
    return lanes == 8 || distances_[at + lanes - 1] >= neighbor.squared_distance;
  }

  std::span<Neighbor> buffer_;
  std::size_t size_ = 0;
  std::size_t end_;  // number of entries, rounded up to full vectors
  // A vector of entries that are never moved, then the list.
  alignas(64) std::array<double, lanes + max_sorted_list> distances_;
  alignas(64) std::array<std::int64_t, lanes + max_sorted_list> points_;
};

// The nearest points so far in a heap, with the farthest on top.
class Heap {
 public:
  Heap(std::span<Neighbor> buffer, double limit) : buffer_(buffer), bound_{limit, no_position_limit} {}

  const Bound& bound() const { return bound_; }
  std::size_t size() const { return size_; }

  void add(const Neighbor& neighbor) {
    if (size_ < buffer_.size()) {
      buffer_[size_++] = neighbor;
      std::push_heap(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(size_), comes_before);
    } else {
      replace_top(neighbor);
    }
    if (size_ == buffer_.size()) {
      bound_ = {buffer_.front().squared_distance, buffer_.front().position};
    }
  }

  void finish() { std::sort_heap(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(size_), comes_before); }

 private:
  void replace_top(const Neighbor& neighbor) {
    std::size_t index = 0;
    for (std::size_t child = 1; child < size_; child = 2 * index + 1) {
      child += child + 1 < size_ && comes_before(buffer_[child], buffer_[child + 1]) ? 1 : 0;
      if (!comes_before(neighbor, buffer_[child])) {
        break;
      }
      buffer_[index] = buffer_[child];
      index = child;
    }
    buffer_[index] = neighbor;
  }

  std::span<Neighbor> buffer_;
  std::size_t size_ = 0;
  Bound bound_;
};

// Collects all points within a limit.
class AllWithin {
 public:
  explicit AllWithin(double limit) : bound_{limit, no_position_limit} {}

  const Bound& bound() const { return bound_; }
  void add(const Neighbor& neighbor) { found_.push_back(neighbor); }
  void finish() { std::ranges::sort(found_, comes_before); }
  std::vector<Neighbor> release() { return std::move(found_); }

 private:
  std::vector<Neighbor> found_;
  Bound bound_;
};

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
