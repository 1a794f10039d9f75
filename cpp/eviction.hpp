// Which centers later ones make redundant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kd_tree.hpp"

namespace ellipack {

// For each point the position of another one and the squared distance to it: -1 and infinity if there is none.
struct LaterNeighbors {
  std::vector<std::int64_t> positions;
  std::vector<double> squared_distances;
};

// Finds, for each point, the nearest one that was inserted later and is in the same leaf of `tree`. Of equally near
// ones the earliest counts.
//
// `points` holds all points of the tree, one a row of `dimension` coordinates, which may be more than the tree has.
// Most close pairs share a leaf, and the pairs of a leaf are a few thousand where all pairs would be billions.
LaterNeighbors nearest_later_in_leaf(const KdTree& tree, std::span<const double> points, std::size_t dimension);

}  // namespace ellipack
