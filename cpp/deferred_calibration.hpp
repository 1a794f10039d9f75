// Calibration of intervals that is put off until intervals are asked for.
//
// Rounds without intervals are deferred: only their errors are remembered, those of the last 2,048 of them. When
// intervals are asked for, the deferred rounds are run first. A deferred round is a round whose prediction is 0 and
// whose label is the error.
//
// This is more than the calibration remembers: a round counts in the mean error for about 200 rounds, and widths adapt
// within 70 to 370 rounds, faster at first. Errors are 16 KB, and their rounds take about 15 microseconds.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "conformal.hpp"

namespace ellipack {

class DeferredCalibration {
 public:
  static constexpr std::size_t most_errors = 2048;

  DeferredCalibration() = default;

  // Restores the state, with the errors of the deferred rounds from the oldest to the newest. Throws
  // std::invalid_argument unless it is possible.
  DeferredCalibration(const ConformalIntervals& calibrated, std::span<const double> errors);

  bool operator==(const DeferredCalibration& other) const;

  // Returns the calibration without the deferred rounds.
  const ConformalIntervals& calibrated() const { return calibrated_; }

  // Returns the errors of the deferred rounds, from the oldest to the newest.
  std::vector<double> errors() const;

  // Returns the calibration after the deferred rounds.
  ConformalIntervals intervals() const;

  // Defers a round for each of the predictions and labels.
  void defer(std::span<const double> predictions, std::span<const double> labels);

  // Runs the deferred rounds, and then a round for each of the predictions and labels; see
  // `ConformalIntervals::run_rounds`. Without labels, nothing changes.
  template <typename Publish>
  void run_rounds(std::span<const double> predictions, std::span<const double> labels, Publish publish) {
    if (labels.empty()) {
      return;
    }
    calibrated_ = intervals();
    count_ = 0;
    calibrated_.run_rounds(predictions, labels, publish);
  }

  // Returns the calibration for labels that are multiplied by a slope.
  DeferredCalibration in_units(double slope) const;

 private:
  // Returns the errors up to the end of the array and those from its start on, from the oldest to the newest.
  std::array<std::span<const double>, 2> parts() const;

  ConformalIntervals calibrated_;
  std::size_t count_ = 0;                     // number of deferred rounds
  std::size_t next_ = 0;                      // where the next error is written; the array is circular
  std::array<double, most_errors> errors_{};  // of the deferred rounds
};

}  // namespace ellipack
