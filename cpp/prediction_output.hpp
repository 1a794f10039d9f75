// Where a core writes predictions and, if they are wanted, their intervals.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <tuple>

#include "checks.hpp"
#include "conformal.hpp"

namespace ellipack {

struct PredictionOutput {
  static constexpr std::size_t bounds_per_row = std::tuple_size_v<ConformalIntervals::Bounds>;

  std::span<double> predictions;
  std::span<double> bounds;  // empty if intervals are not wanted

  // Throws std::invalid_argument unless there is one entry per row.
  void check(std::size_t rows) const {
    require(predictions.size() == rows, "predictions must have one entry per row");
    require(bounds.empty() || bounds.size() == rows * bounds_per_row,
            "bounds must have two entries per coverage and row");
  }

  bool has_bounds() const { return !bounds.empty(); }

  void write_bounds(std::size_t row, const ConformalIntervals::Bounds& intervals) const {
    std::ranges::copy(intervals, bounds.begin() + static_cast<std::ptrdiff_t>(row * bounds_per_row));
  }

  // Writes a prediction and, if they are wanted, the intervals around it with the mean error as scale.
  void write(std::size_t row, double prediction, const ConformalIntervals& intervals) const {
    predictions[row] = prediction;
    if (has_bounds()) {
      write_bounds(row, intervals.around(prediction, 1.0));
    }
  }

  // The same for a prediction whose label is known now, by which the intervals are calibrated.
  void write_round(std::size_t row, double prediction, double label, ConformalIntervals& intervals) const {
    predictions[row] = prediction;
    if (has_bounds()) {
      write_bounds(row, intervals.run_round(prediction, label));
    } else {
      intervals.run_silent_round(prediction, label);
    }
  }
};

}  // namespace ellipack
