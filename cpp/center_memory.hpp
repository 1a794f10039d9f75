// The centers of a learner, shared by all views. A center is a row, or several rows that have the same coordinates in
// the first view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "feature_views.hpp"
#include "row_blocks.hpp"

namespace ellipack {

struct CenterMemory {
  static constexpr double largest_row = 1e150;  // sums and differences of such rows are finite

  RowBlocks rows;  // mean row of each center
  std::vector<double> label_sums;
  std::vector<std::int64_t> label_counts;
  std::vector<double> round_sums;  // sum of the rounds in which the labels were learned
  std::vector<double> error_sums;  // sum of the errors of the predictions, each in units of the mean error of its time

  std::size_t size() const { return label_sums.size(); }
  std::size_t dimension() const { return rows.width(); }
  double mean_error(std::size_t center) const { return error_sums[center] / static_cast<double>(label_counts[center]); }
  double mean_label(std::size_t center) const { return label_sums[center] / static_cast<double>(label_counts[center]); }

  // Throws std::invalid_argument unless all arrays have one entry per center and all values are in range.
  void check() const;

  // Allocate what `add` and `merge` need, so that they do not throw.
  void make_room_to_add();
  void make_room_to_merge(std::size_t center) { rows.write(center); }

  // A row to learn.
  struct Entry {
    std::span<const double> row;
    double label;
    double error;  // relative error of its prediction
    std::int64_t round;
  };

  // Adds a center.
  void add(const Entry& entry);
  // Merges a row and its label with a center.
  void merge(std::size_t center, const Entry& entry);

  // Returns some of the centers. Places must be in range.
  CenterMemory take(std::span<const std::int64_t> places) const;
  // Replaces some of the centers by others, of which there must be as many.
  void put(std::span<const std::int64_t> places, const CenterMemory& others);
  // Adds centers.
  void append(const CenterMemory& others);

  // Standardizes some of the centers by a view, and returns their products with `directions`. Places must be in range.
  std::vector<double> project(const FeatureView& view, std::span<const std::int64_t> places,
                              std::span<const double> directions) const;
};

}  // namespace ellipack
