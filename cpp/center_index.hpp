// Index of the centers of a learner by their coordinates in each view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "checks.hpp"
#include "copy_on_write.hpp"
#include "kd_tree.hpp"

namespace ellipack {

// Copies share the trees until one of them changes, so that a state with many centers is copied in no time.
struct CenterIndex {
  static constexpr double largest_coordinate = 1e100;

  std::vector<CopyOnWrite<KdTree>> trees;  // one for each view

  // Adds a view with the coordinates of all centers, one center per row.
  void add_view(std::span<const double> coordinates, std::size_t rank) {
    check_coordinates(coordinates);
    trees.emplace_back(coordinates.empty() ? KdTree(rank) : KdTree(coordinates, rank));
  }

  // Adds centers by their coordinates in a view.
  void append(std::size_t view, std::span<const double> coordinates) {
    check_coordinates(coordinates);
    KdTree& tree = trees[view].write();
    for (std::size_t first = 0; first < coordinates.size(); first += tree.dimension()) {
      tree.insert(coordinates.subspan(first, tree.dimension()));
    }
  }

 private:
  static void check_coordinates(std::span<const double> coordinates) {
    require(all_within(coordinates, largest_coordinate), "coordinates must be finite and at most 1e100 in size");
  }
};

}  // namespace ellipack
