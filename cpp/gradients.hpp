// Estimates of gradients from rows and labels: central differences of a kernel regression (appendix A), and slopes of
// local ridge regressions. Also the exact sums that average their outer products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kd_tree.hpp"

namespace ellipack {

struct DifferenceSettings {
  double bandwidth;
  double step;
  double mass_threshold;  // rows that both shifted balls of half a bandwidth must hold
  int inner_power;        // the kernel is (1 - u^inner)^outer on [0, 1]; both powers are 1, 2 or 3
  int outer_power;
};

struct DifferenceGradients {
  std::vector<double> gradients;          // one row an anchor
  std::vector<std::uint8_t> enough_mass;  // 1 where both shifted balls hold enough rows; the gradient is 0 elsewhere
};

// Appendix A's estimator: at an anchor x, (f(x + step e_i) - f(x - step e_i)) / (2 step) for each coordinate i, where f
// is the kernel regression on all rows. Where no row has weight, f is the mean label.
class DifferenceEstimator {
 public:
  DifferenceEstimator(std::span<const double> rows, std::span<const double> labels, const DifferenceSettings& settings);

  // Builds a tree over the rows, so that each anchor visits only the rows in its reach. No result changes.
  void build_index();

  std::size_t dimension() const { return dimension_; }

  DifferenceGradients gradients(std::span<const double> anchors) const;

 private:
  struct Workspace;

  void gradient(std::span<const double> anchor, Workspace& work, std::span<double> out,
                std::span<std::uint8_t> enough_mass) const;
  std::span<const std::int32_t> rows_in_support(std::span<const double> anchor, Workspace& work) const;
  double regression(double weighted_labels, double weight) const;

  DifferenceSettings settings_;
  std::size_t dimension_;
  std::size_t stride_;            // of rows_, a multiple of the lanes of a vector
  std::vector<double> rows_;      // padded with zeros
  std::vector<double> unpadded_;  // what a tree is built over
  std::vector<double> labels_;
  std::vector<std::int32_t> all_rows_;
  double mean_label_;
  std::optional<KdTree> tree_;
};

// The slope at each query of a weighted ridge regression on its `neighbors` nearest points. The weight of a neighbor
// falls with its squared distance, to 0 at the last. The ridge is relative to the mean variance of the neighbors along
// a coordinate; the intercept is not penalized. `labels` are those of the points of the tree, by position.
std::vector<double> local_slopes(const KdTree& tree, std::span<const double> labels, std::span<const double> queries,
                                 std::size_t neighbors, double ridge);

}  // namespace ellipack
