// Where a core writes predictions and, if they are wanted, their intervals.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <tuple>

#include "checks.hpp"
#include "conformal.hpp"
#include "deferred_calibration.hpp"

namespace ellipack {

struct PredictionOutput {
  std::span<double> predictions;
  std::span<double> bounds;                                 // of a row: lower ends, then upper ends
  std::span<const ConformalIntervals::Position> positions;  // of the wanted intervals; empty if none are wanted

  // Throws std::invalid_argument unless there is one entry per row.
  void check(std::size_t rows) const {
    require(predictions.size() == rows, "predictions must have one entry per row");
    require(bounds.size() == 2 * rows * positions.size(), "bounds must have two entries per coverage and row");
  }

  bool has_bounds() const { return !positions.empty(); }

  // Writes the wanted ones of all intervals around a prediction.
  void write_bounds(std::size_t row, const ConformalIntervals::Bounds& all) const {
    const std::size_t count = positions.size();
    for (std::size_t k = 0; k < count; ++k) {
      const ConformalIntervals::Position& each = positions[k];
      constexpr std::size_t above = ConformalIntervals::size;
      bounds[2 * row * count + k] = each.between(all[each.near], all[each.far]);
      bounds[(2 * row + 1) * count + k] = each.between(all[above + each.near], all[above + each.far]);
    }
  }

  // Writes the wanted intervals around the predictions of consecutive rows.
  void write_intervals(std::size_t first, std::span<const ConformalIntervals::Calibration> calibrations) const {
    const std::size_t count = positions.size();
    for (std::size_t k = 0; k < count; ++k) {
      for (std::size_t i = 0; i < calibrations.size(); ++i) {
        const std::size_t row = first + i;
        const ConformalIntervals::Interval interval = calibrations[i].around(predictions[row], positions[k]);
        bounds[2 * row * count + k] = interval.lower;
        bounds[(2 * row + 1) * count + k] = interval.upper;
      }
    }
  }

  // Returns what the wanted intervals are made of. If none are wanted, deferred rounds are not run.
  ConformalIntervals::Calibration calibration_by(const DeferredCalibration& calibration) const {
    return has_bounds() ? calibration.intervals().calibration() : ConformalIntervals::Calibration{};
  }

  // Writes a prediction and the wanted intervals around it.
  void write(std::size_t row, double prediction, const ConformalIntervals::Calibration& calibration) const {
    predictions[row] = prediction;
    write_intervals(row, {&calibration, 1});
  }

  // Runs a round for each label, in which `run_round(row)` returns the prediction. If intervals are wanted, they are
  // calibrated by all rounds at the end, also if a round fails, because the calibration is faster in a loop of its own.
  // Otherwise the calibration is deferred.
  template <typename RunRound>
  void run_rounds(std::span<const double> labels, DeferredCalibration& calibration, RunRound run_round) const {
    std::size_t rows = 0;
    try {
      for (; rows < labels.size(); ++rows) {
        predictions[rows] = run_round(rows);
      }
    } catch (...) {
      end_rounds(labels.first(rows), calibration);
      throw;
    }
    end_rounds(labels, calibration);
  }

 private:
  // Calibrates by the first predictions and their labels, and writes the wanted intervals, or defers both.
  void end_rounds(std::span<const double> labels, DeferredCalibration& calibration) const {
    if (has_bounds()) {
      calibration.run_rounds(predictions, labels,
                             [&](std::size_t first, auto calibrations) { write_intervals(first, calibrations); });
    } else {
      calibration.defer(predictions, labels);
    }
  }
};

}  // namespace ellipack
