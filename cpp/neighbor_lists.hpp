// The nearest points that a search in the kd-tree has found so far: a sorted list for few of them, a heap for many, or
// all points within a limit. Each has the same functions: `bound`, before which a point must come to be added, `add`,
// and `finish`, after which the points are in the order of results.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "kd_tree.hpp"
#include "simd.hpp"

namespace ellipack {

inline constexpr std::size_t max_sorted_list = 64;  // up to this many neighbors, a sorted list is faster than a heap
inline constexpr std::int64_t no_position_limit = std::int64_t{1} << 62;

// The order of results: by squared distance, then by position.
inline bool comes_before(const Neighbor& one, const Neighbor& other) {
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
    std::fill_n(distances_.begin(), lanes, -std::numeric_limits<double>::infinity());
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

}  // namespace ellipack
