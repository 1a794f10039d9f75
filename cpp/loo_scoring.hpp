// Leave-one-out scores of candidate metrics: how well kriging predicts labels that are known, each without its own.
//
// Whether one metric is better than another shows in the third digit, if at all. So single precision suffices, in which
// eight neighborhoods are kriged at once. For that each is brought to unit size: distances by the farthest neighbor's,
// labels by the caller.
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
  // `labels` belong to the points of all candidates and should be about 1 in size; `validation` says which points are
  // predicted from their `neighbors` nearest. Throws std::invalid_argument unless there are more points than neighbors.
  LeaveOneOutScorer(std::vector<double> labels, std::vector<std::int64_t> validation, std::size_t neighbors);

  std::size_t points() const { return labels_.size(); }

  // The sum of squared errors over the validation points, where the coordinates of the points are the columns of
  // `projected` times `scales`; infinite if these are not finite. The result does not depend on what was scored before.
  double score(std::span<const double> projected, std::span<const double> scales);

 private:
  static constexpr int lanes = 8;

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
  std::vector<Neighbor> found_;                   // of each validation point, most likely itself among them
  simd::AlignedVector<float> columns_;            // offsets from eight validation points, by coordinate and neighbor
  simd::AlignedVector<float> squared_distances_;  // from them
  simd::AlignedVector<float> neighbor_labels_;    // less theirs
  simd::AlignedVector<float> systems_;
};

}  // namespace ellipack
