#include "intrinsic_dimension.hpp"

#include <cmath>
#include <mutex>
#include <utility>

#include "checks.hpp"

namespace ellipack {

IntrinsicDimensionCore::IntrinsicDimensionCore(std::size_t dimension, std::int64_t offset)
    : IntrinsicDimensionCore(PackingCenters(dimension), offset, DimensionClock{}, {}) {}

IntrinsicDimensionCore::IntrinsicDimensionCore(PackingCenters centers, std::int64_t offset, DimensionClock clock,
                                               const DeferredCalibration& calibration)
    : dimension_(centers.points.dimension()),
      offset_(offset),
      centers_(std::move(centers)),
      clock_(clock),
      calibration_(calibration) {
  require(offset == 1 || offset == 2, "offset must be 1 or 2");
  require(clock.rounds >= 0 && clock.rounds <= largest_count, "rounds must be from 0 to 2^52");
  require((clock.rounds > 0) == (centers_.size() > 0), "centers must exist if and only if rounds > 0");
  require(clock.dimension >= 1 && std::cmp_less_equal(clock.dimension, dimension_),
          "dimension must be from 1 to the number of coordinates");
  require(clock.phase_centers >= 0 && std::cmp_less_equal(clock.phase_centers, centers_.size()),
          "phase_centers must be from 0 to the number of centers");
  require(centers_.creation_rounds.empty() || centers_.creation_rounds.back() <= clock.rounds,
          "creation_rounds must be <= rounds");
  std::int64_t left = clock.rounds;
  for (const std::int64_t count : centers_.label_counts) {
    require(count >= 1 && count <= left, "label_counts must be >= 1 and add up to rounds");
    left -= count;
  }
  require(left == 0, "label_counts must be >= 1 and add up to rounds");
}

IntrinsicDimensionCore::IntrinsicDimensionCore(const IntrinsicDimensionCore& other)
    : IntrinsicDimensionCore(other, std::shared_lock(other.mutex_)) {}

IntrinsicDimensionCore::IntrinsicDimensionCore(const IntrinsicDimensionCore& other,
                                               const std::shared_lock<FairSharedMutex>&)
    : dimension_(other.dimension_),
      offset_(other.offset_),
      centers_(other.centers_),
      clock_(other.clock_),
      calibration_(other.calibration_) {}

void IntrinsicDimensionCore::learn(std::span<const double> coordinates, std::span<const double> labels,
                                   const PredictionOutput& output) {
  output.check(labels.size());
  const std::unique_lock lock(mutex_);
  output.run_rounds(labels, calibration_, [&](std::size_t row) {
    return run_round(coordinates.subspan(row * dimension_, dimension_), labels[row]);
  });
}

double IntrinsicDimensionCore::run_round(std::span<const double> point, double label) {
  const Neighbor nearest = centers_.points.nearest(point);
  const double prediction = centers_.mean(nearest.position);
  const double distance = std::sqrt(nearest.squared_distance);  // infinite without centers
  DimensionClock next = clock_;
  ++next.rounds;
  double reach = radius(next);
  const double most_centers = std::pow(packing_constant / reach, static_cast<double>(next.dimension));
  if (distance > reach && static_cast<double>(next.phase_centers + 1) > most_centers &&
      std::cmp_less(next.dimension, dimension_)) {
    ++next.dimension;
    next.phase_centers = 0;
    reach = radius(next);
  }
  auto active = static_cast<std::size_t>(nearest.position);
  if (distance > reach) {
    active = centers_.add(point, next.rounds);
    ++next.phase_centers;
  }
  centers_.add_label(active, label);
  clock_ = next;
  return prediction;
}

double IntrinsicDimensionCore::radius(const DimensionClock& clock) const {
  return std::pow(static_cast<double>(clock.rounds), -1.0 / static_cast<double>(offset_ + clock.dimension));
}

void IntrinsicDimensionCore::predict(std::span<const double> coordinates, const PredictionOutput& output) const {
  const std::size_t count = coordinates.size() / dimension_;
  output.check(count);
  const std::shared_lock lock(mutex_);
  const ConformalIntervals::Calibration calibration = output.calibration_by(calibration_);
  for (std::size_t row = 0; row < count; ++row) {
    const Neighbor nearest = centers_.points.nearest(coordinates.subspan(row * dimension_, dimension_));
    output.write(row, centers_.mean(nearest.position), calibration);
  }
}

std::size_t IntrinsicDimensionCore::size() const {
  const std::shared_lock lock(mutex_);
  return centers_.size();
}

DimensionClock IntrinsicDimensionCore::clock() const {
  const std::shared_lock lock(mutex_);
  return clock_;
}

DeferredCalibration IntrinsicDimensionCore::calibration() const {
  const std::shared_lock lock(mutex_);
  return calibration_;
}

void IntrinsicDimensionCore::set_calibration(const DeferredCalibration& calibration) {
  const std::unique_lock lock(mutex_);
  calibration_ = calibration;
}

}  // namespace ellipack
