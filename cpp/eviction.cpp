#include "eviction.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

#include "simd.hpp"

namespace ellipack {

namespace {

using simd::Double4;

// The points of one leaf, stored column by column, so that a vector holds one coordinate of several points.
class LeafBlock {
 public:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  explicit LeafBlock(std::size_t dimension) : dimension_(dimension), columns_(dimension * KdTree::leaf_size) {}

  void load(std::span<const std::int32_t> held, std::span<const double> points) {
    positions_.fill(-1.0);  // of lanes without a point
    for (std::size_t lane = 0; lane < held.size(); ++lane) {
      positions_[lane] = held[lane];
      for (std::size_t k = 0; k < dimension_; ++k) {
        columns_[k * KdTree::leaf_size + lane] = points[static_cast<std::size_t>(held[lane]) * dimension_ + k];
      }
    }
  }

  // The nearest of the points after a position: its squared distance, infinity if there is none, and its position. Of
  // several, it is the first one.
  struct Later {
    double squared_distance;
    double position;
  };
  Later nearest_later(double position, std::span<const double> point) const {
    std::array<Double4, parts> distances;
    const auto none = simd::splat<Double4>(infinity);
    Double4 least = none;
    for (std::size_t part = 0; part < parts; ++part) {
      const auto own = simd::load<Double4>(&positions_[part * lanes]);
      distances[part] = own > position ? measure(part, point) : none;
      least = simd::min(least, distances[part]);
    }
    const double nearest = std::min({least[0], least[1], least[2], least[3]});
    Double4 first = none;
    for (std::size_t part = 0; part < parts; ++part) {
      const auto own = simd::load<Double4>(&positions_[part * lanes]);
      first = simd::min(first, distances[part] == nearest ? own : none);
    }
    return {nearest, std::min({first[0], first[1], first[2], first[3]})};
  }

 private:
  static constexpr std::size_t lanes = simd::lane_count<Double4>;
  static constexpr std::size_t parts = KdTree::leaf_size / lanes;

  // Returns the squared distances from a point to some lanes.
  Double4 measure(std::size_t part, std::span<const double> point) const {
    Double4 sum{};
    for (std::size_t k = 0; k < dimension_; ++k) {
      const Double4 difference = point[k] - simd::load<Double4>(&columns_[k * KdTree::leaf_size + part * lanes]);
      sum += difference * difference;
    }
    return sum;
  }

  std::size_t dimension_;
  std::vector<double> columns_;  // (coordinate, lane)
  std::array<double, KdTree::leaf_size> positions_{};
};

}  // namespace

LaterNeighbors nearest_later_in_leaf(const KdTree& tree, std::span<const double> points, std::size_t dimension) {
  assert(points.size() == tree.size() * dimension);
  LaterNeighbors found{std::vector<std::int64_t>(tree.size(), -1),
                       std::vector<double>(tree.size(), LeafBlock::infinity)};
  LeafBlock block(dimension);
  for (std::size_t leaf = 0; leaf < tree.leaf_count(); ++leaf) {
    const std::span<const std::int32_t> held = tree.leaf_positions(leaf);
    block.load(held, points);
    for (const std::int32_t position : held) {
      const auto row = static_cast<std::size_t>(position);
      const LeafBlock::Later later = block.nearest_later(position, points.subspan(row * dimension, dimension));
      if (later.squared_distance < LeafBlock::infinity) {
        found.squared_distances[row] = later.squared_distance;
        found.positions[row] = static_cast<std::int64_t>(later.position);
      }
    }
  }
  return found;
}

}  // namespace ellipack
