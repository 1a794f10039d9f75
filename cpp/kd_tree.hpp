// An exact index of nearest neighbors among points that keep being inserted: a kd-tree whose leaves hold up to 64 points.
//
// Coordinates are whitened already, so that distances are Euclidean and the first coordinates tell the most. The squared
// distance of two points is the sum, from the first coordinate to the last, of the squared differences, each operation
// rounded once. Every answer goes by that number; ties go to the point that was inserted earlier. No answer depends on
// how the points were inserted or on the shape of the tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace ellipack {

// A point that a search has found: its position in the order of insertion, and the slot that holds its coordinates.
struct Neighbor {
  double squared_distance = std::numeric_limits<double>::infinity();
  std::int32_t position = -1;
  std::int32_t slot = -1;
};

class KdTree {
 public:
  static constexpr std::size_t leaf_size = 64;

  explicit KdTree(std::size_t dimension);

  // Builds a balanced tree over points, one a row.
  KdTree(std::span<const double> points, std::size_t dimension);

  std::size_t size() const;
  std::size_t dimension() const;
  std::size_t memory_bytes() const;

  // The coordinates of all points, one a row, in the order of their insertion.
  std::vector<double> points() const;

  // The coordinates of a point that a search has found. They stay there until the next insertion.
  std::span<const double> coordinates(const Neighbor& neighbor) const;

  void insert(std::span<const double> point);

  // The nearest point; position -1 if there is none.
  Neighbor nearest(std::span<const double> query) const;

  // Fills `found` with the nearest points at a squared distance of at most `limit`, sorted by (squared distance,
  // position), and returns how many there are. A full answer may leave out others within the limit.
  std::size_t k_nearest(std::span<const double> query, double limit, std::span<Neighbor> found) const;

  // All points at a squared distance of at most `limit`, sorted by (squared distance, position).
  std::vector<Neighbor> within(std::span<const double> query, double limit) const;
};

}  // namespace ellipack
