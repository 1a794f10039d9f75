// Leave-one-out scores of candidate metrics: errors of kriging at points with known labels, each predicted without its
// own label.
//
// Differences below the third digit are noise, so single precision suffices. Several neighborhoods are processed at
// once. Distances are scaled by that of the farthest neighbor; the caller scales the labels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kd_tree.hpp"
#include "simd.hpp"

namespace ellipack {

class LeaveOneOutScorer {
 public:
  // `labels` are the labels of the points, of the order of 1. `validation` contains the positions of the points that
  // are predicted from their `neighbors` nearest. Throws std::invalid_argument unless there are more points than
  // neighbors.
  LeaveOneOutScorer(std::vector<double> labels, std::vector<std::int64_t> validation, std::size_t neighbors);

  std::size_t points() const { return labels_.size(); }

  // Returns the sum of squared errors over the validation points for the coordinates `projected * scales`, or infinity
  // if these are not finite. The result does not depend on earlier calls.
  double score(std::span<const double> projected, std::span<const double> scales);

 private:
  std::span<const double> point(std::size_t at) const { return {coordinates_.data() + at * rank_, rank_}; }
  void find_neighbors(std::size_t row, const KdTree& tree);
  double farthest_previous_neighbor(std::size_t row) const;
  void fill_lane(std::size_t row, int lane);
  void krige(float* predictions);

  std::vector<double> labels_;
  std::vector<std::int64_t> validation_;
  std::size_t neighbors_;
  bool has_searched_ = false;
  std::size_t rank_ = 0;
  std::vector<double> coordinates_;
  std::vector<Neighbor> found_;                   // neighbors of each validation point, usually including itself
  simd::AlignedVector<float> columns_;            // offsets from validation points, by coordinate and neighbor
  simd::AlignedVector<float> squared_distances_;  // from the validation points
  simd::AlignedVector<float> neighbor_labels_;    // relative to the validation points
  simd::AlignedVector<float> systems_;
};

}  // namespace ellipack
