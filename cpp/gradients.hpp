// Gradient estimators: central differences of a kernel regression (appendix A), and slopes of local ridge regressions.
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
  double mass_threshold;  // number of rows that both shifted balls of half a bandwidth must contain
  int inner_power;        // kernel (1 - u^inner)^outer on [0, 1]; both powers are 1, 2 or 3
  int outer_power;
};

struct DifferenceGradients {
  std::vector<double> gradients;          // one row per anchor
  std::vector<std::uint8_t> enough_mass;  // 1 if both shifted balls contain enough rows; otherwise the gradient is 0
};

// Gradient estimator of appendix A. At an anchor x, it returns (f(x + step e_i) - f(x - step e_i)) / (2 step) for each
// coordinate i, where f is the kernel regression on all rows. Where all weights are 0, f is the mean label.
class DifferenceEstimator {
 public:
  DifferenceEstimator(std::span<const double> rows, std::span<const double> labels, const DifferenceSettings& settings);

  // Builds a kd-tree, so that each anchor visits only rows in the support of its kernels. Results do not change.
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
  std::size_t stride_;            // row length of rows_, a multiple of the vector width
  std::vector<double> rows_;      // padded with zeros
  std::vector<double> unpadded_;  // input of the kd-tree
  std::vector<double> labels_;
  std::vector<std::int32_t> all_rows_;
  double mean_label_;
  std::optional<KdTree> tree_;
};

// Returns the slope of a weighted ridge regression on the `neighbors` nearest points of each query. Weights decrease
// with the squared distance and are 0 at the farthest neighbor. The ridge is relative to the mean variance of the
// neighbors along a coordinate; the intercept is not penalized. `labels` are the labels of the points of the tree, by
// position.
std::vector<double> local_slopes(const KdTree& tree, std::span<const double> labels, std::span<const double> queries,
                                 std::size_t neighbors, double ridge);

}  // namespace ellipack
