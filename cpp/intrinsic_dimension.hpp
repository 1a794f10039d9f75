// Algorithm 1 with radii that adapt to the dimension of the rows (after Kpotufe and Orabona 2013), in whitened
// coordinates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <shared_mutex>
#include <span>
#include <vector>

#include "deferred_calibration.hpp"
#include "fair_shared_mutex.hpp"
#include "packing_core.hpp"
#include "prediction_output.hpp"

namespace ellipack {

// The clock of the radii. A phase lasts as long as the estimated dimension does not change.
struct DimensionClock {
  std::int64_t rounds = 0;
  std::int64_t dimension = 1;      // estimate of the dimension of the rows
  std::int64_t phase_centers = 0;  // number of centers added in the current phase
};

// The learner with its state. The radius is t^(-1 / (offset + D)) in round t, where D is the estimate of the dimension.
// Rows of dimension D have at most (packing_constant / radius)^D points that are farther apart than the radius. If the
// phase has more centers, D increases by 1.
//
// Threads may predict while one learns. Calls take effect in the order in which they start.
class IntrinsicDimensionCore {
 public:
  // Packings of the unit ball in D dimensions have at most (1 + 2 / radius)^D points, and the radius is at most 1.
  static constexpr double packing_constant = 3.0;

  IntrinsicDimensionCore(std::size_t dimension, std::int64_t offset);

  // Restores the state. Throws std::invalid_argument if no sequence of rounds leads to it.
  IntrinsicDimensionCore(PackingCenters centers, std::int64_t offset, DimensionClock clock,
                         const DeferredCalibration& calibration);

  IntrinsicDimensionCore(const IntrinsicDimensionCore& other);
  IntrinsicDimensionCore& operator=(const IntrinsicDimensionCore&) = delete;

  // Runs one round per row of `coordinates`. Writes the predictions and intervals, each made before its label was
  // learned.
  void learn(std::span<const double> coordinates, std::span<const double> labels, const PredictionOutput& output);

  // Writes the prediction and intervals of each row of `coordinates`; 1/2 before the first round.
  void predict(std::span<const double> coordinates, const PredictionOutput& output) const;

  std::size_t dimension() const { return dimension_; }
  std::int64_t offset() const { return offset_; }
  std::size_t size() const;
  DimensionClock clock() const;

  DeferredCalibration calibration() const;
  void set_calibration(const DeferredCalibration& calibration);

  // Returns `function(centers, clock, calibration)`, called between two rounds.
  template <typename Function>
  auto inspect(Function function) const {
    const std::shared_lock lock(mutex_);
    return function(centers_, clock_, calibration_);
  }

 private:
  // Copies another core while `lock` protects it.
  IntrinsicDimensionCore(const IntrinsicDimensionCore& other, const std::shared_lock<FairSharedMutex>& lock);

  // The caller holds the lock.
  double run_round(std::span<const double> point, double label);
  double radius(const DimensionClock& clock) const;

  std::size_t dimension_;
  std::int64_t offset_;
  mutable FairSharedMutex mutex_;  // guards the members below
  PackingCenters centers_;
  DimensionClock clock_;
  DeferredCalibration calibration_;
};

}  // namespace ellipack
