#include "eviction.hpp"

#include <array>
#include <cassert>
#include <limits>

#include "simd.hpp"

namespace ellipack {

namespace {

// The points of one leaf, stored column by column, so that a vector holds one coordinate of several points.
class LeafBlock {
 public:
  explicit LeafBlock(std::size_t dimension) : dimension_(dimension), columns_(dimension * KdTree::leaf_size) {}

  void load(std::span<const std::int32_t> held, std::span<const double> points) {
    for (std::size_t lane = 0; lane < held.size(); ++lane) {
      for (std::size_t k = 0; k < dimension_; ++k) {
        columns_[k * KdTree::leaf_size + lane] = points[static_cast<std::size_t>(held[lane]) * dimension_ + k];
      }
    }
  }

  // Computes the squared distances from a point to all lanes. Values of lanes without a point are unspecified.
  void measure(std::span<const double> point, std::array<double, KdTree::leaf_size>& distances) const {
    constexpr std::size_t width = 4;
    for (std::size_t lane = 0; lane < KdTree::leaf_size; lane += 4 * width) {
      std::array<simd::Double4, 4> totals{};
      for (std::size_t k = 0; k < dimension_; ++k) {
        const double* column = columns_.data() + k * KdTree::leaf_size + lane;
        for (std::size_t part = 0; part < totals.size(); ++part) {
          const simd::Double4 difference = point[k] - simd::load<simd::Double4>(column + width * part);
          totals[part] += difference * difference;
        }
      }
      for (std::size_t part = 0; part < totals.size(); ++part) {
        simd::store(distances.data() + lane + width * part, totals[part]);
      }
    }
  }

 private:
  std::size_t dimension_;
  std::vector<double> columns_;  // (coordinate, lane)
};

}  // namespace

LaterNeighbors nearest_later_in_leaf(const KdTree& tree, std::span<const double> points, std::size_t dimension) {
  assert(points.size() == tree.size() * dimension);
  LaterNeighbors found{std::vector<std::int64_t>(tree.size(), -1),
                       std::vector<double>(tree.size(), std::numeric_limits<double>::infinity())};
  LeafBlock block(dimension);
  std::array<double, KdTree::leaf_size> distances;
  for (std::size_t leaf = 0; leaf < tree.leaf_count(); ++leaf) {
    const std::span<const std::int32_t> held = tree.leaf_positions(leaf);
    block.load(held, points);
    for (const std::int32_t position : held) {
      const auto row = static_cast<std::size_t>(position);
      block.measure(points.subspan(row * dimension, dimension), distances);
      for (std::size_t lane = 0; lane < held.size(); ++lane) {
        const double best = found.squared_distances[row];
        if (held[lane] > position &&
            (distances[lane] < best || (distances[lane] == best && held[lane] < found.positions[row]))) {
          found.squared_distances[row] = distances[lane];
          found.positions[row] = held[lane];
        }
      }
    }
  }
  return found;
}

}  // namespace ellipack
