// Search for the nearest later point in the same leaf, for eviction. Python decides which centers are evicted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kd_tree.hpp"

namespace ellipack {

// For each point, the position of another point and the squared distance to it; -1 and infinity if there is none.
struct LaterNeighbors {
  std::vector<std::int64_t> positions;
  std::vector<double> squared_distances;
};

// Finds, for each point, the nearest point that was inserted later and is in the same leaf of `tree`. Ties go to the
// earliest.
//
// `points` contains all points of the tree, one per row of `dimension` coordinates, which may be more than the tree
// uses. The search is restricted to leaves because most close pairs share a leaf, and a leaf has only a few thousand
// pairs.
LaterNeighbors nearest_later_in_leaf(const KdTree& tree, std::span<const double> points, std::size_t dimension);

}  // namespace ellipack
