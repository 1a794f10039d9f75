#include "packing_core.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "checks.hpp"
#include "reserve_more.hpp"

namespace ellipack {

namespace {

// Builds a tree over restored points after checking them.
KdTree checked_tree(std::span<const double> coordinates, std::size_t dimension) {
  require(dimension > 0 && coordinates.size() % dimension == 0, "coordinates must have one row per center");
  require(all_finite(coordinates), "coordinates must be finite");
  return coordinates.empty() ? KdTree(dimension) : KdTree(coordinates, dimension);
}

std::vector<std::int64_t> checked_rank_starts(std::vector<std::int64_t> starts, std::size_t dimension) {
  require(starts.size() + 1 == dimension, "rank_starts must have one entry less than the number of coordinates");
  require(std::ranges::is_sorted(starts), "rank_starts must be sorted");
  return starts;
}

}  // namespace

PackingCenters::PackingCenters(std::size_t dimension) : points(dimension) {}

PackingCenters::PackingCenters(std::span<const double> coordinates, std::size_t dimension, std::vector<double> sums,
                               std::vector<std::int64_t> counts, std::vector<std::int64_t> rounds)
    : points(checked_tree(coordinates, dimension)),
      label_sums(std::move(sums)),
      label_counts(std::move(counts)),
      creation_rounds(std::move(rounds)) {
  const std::size_t count = points.size();
  require(label_sums.size() == count, "label_sums must have one entry per center");
  require(label_counts.size() == count, "label_counts must have one entry per center");
  require(creation_rounds.size() == count, "creation_rounds must have one entry per center");
  require(all_finite(label_sums), "label_sums must be finite");
  require(std::ranges::all_of(label_counts, [](std::int64_t each) { return each >= 0 && each <= largest_count; }),
          "label_counts must be from 0 to 2^52");
  require(creation_rounds.empty() || creation_rounds.front() >= 1, "creation_rounds must be >= 1");
  require(std::ranges::adjacent_find(creation_rounds, std::greater_equal<>()) == creation_rounds.end(),
          "creation_rounds must be strictly increasing");
}

void PackingCenters::make_room(std::span<const double> point) {
  reserve_more(label_sums, 1);
  reserve_more(label_counts, 1);
  reserve_more(creation_rounds, 1);
  points.make_room(point);
}

std::size_t PackingCenters::add(std::span<const double> point, std::int64_t round) {
  make_room(point);
  points.insert(point);
  label_sums.push_back(0.0);
  label_counts.push_back(0);
  creation_rounds.push_back(round);
  return size() - 1;
}

PackingCore::PackingCore(std::size_t dimension, std::vector<std::int64_t> rank_starts)
    : PackingCore(PackingCenters(dimension), std::move(rank_starts), 0, {}) {}

PackingCore::PackingCore(PackingCenters centers, std::vector<std::int64_t> rank_starts, std::int64_t clock,
                         const DeferredCalibration& calibration)
    : dimension_(centers.points.dimension()),
      centers_(std::move(centers)),
      radius_(checked_rank_starts(std::move(rank_starts), dimension_)),
      clock_(clock),
      calibration_(calibration) {
  require(clock >= 0 && clock <= largest_count, "clock must be from 0 to 2^52");
  require((clock > 0) == (centers_.size() > 0), "centers must exist if and only if clock > 0");
  require(centers_.creation_rounds.empty() || centers_.creation_rounds.back() <= clock,
          "creation_rounds must be <= clock");
  std::int64_t left = clock;
  for (const std::int64_t count : centers_.label_counts) {
    require(count <= left, "the sum of label_counts must be <= clock");
    left -= count;
  }
}

PackingCore::PackingCore(const PackingCore& other) : PackingCore(other, std::shared_lock(other.mutex_)) {}

PackingCore::PackingCore(const PackingCore& other, const std::shared_lock<FairSharedMutex>&)
    : dimension_(other.dimension_),
      centers_(other.centers_),
      radius_(other.radius_),
      clock_(other.clock_),
      calibration_(other.calibration_) {}

void PackingCore::learn(std::span<const double> coordinates, std::span<const double> labels, bool keep_founding_label,
                        const PredictionOutput& output) {
  output.check(labels.size());
  const std::unique_lock lock(mutex_);
  output.run_rounds(labels, calibration_, [&](std::size_t row) {
    return run_round(coordinates.subspan(row * dimension_, dimension_), labels[row], keep_founding_label);
  });
}

double PackingCore::learn_one(std::span<const double> point, double label, bool keep_founding_label) {
  const std::unique_lock lock(mutex_);
  const double prediction = run_round(point, label, keep_founding_label);
  calibration_.defer({&prediction, 1}, {&label, 1});
  return prediction;
}

double PackingCore::run_round(std::span<const double> point, double label, bool keep_founding_label) {
  const std::int64_t round = clock_ + 1;
  if (centers_.size() == 0) {
    centers_.add(point, round);
  }
  const Neighbor nearest = find_nearest(point);
  const double prediction = centers_.mean(nearest.position);
  if (!radius_.is_beyond(nearest.squared_distance, round)) {
    centers_.add_label(static_cast<std::size_t>(nearest.position), label);
  } else if (const std::size_t added = centers_.add(point, round); keep_founding_label) {
    centers_.add_label(added, label);
  }
  clock_ = round;  // nothing throws after the packing has changed, so a round is complete or has no effect
  return prediction;
}

Neighbor PackingCore::find_nearest(std::span<const double> point) const {
  if (last_search_.clock == clock_ && std::ranges::equal(last_search_.point, point)) {
    return last_search_.nearest;
  }
  return centers_.points.nearest(point);
}

void PackingCore::predict(std::span<const double> coordinates, const PredictionOutput& output) const {
  const std::size_t count = coordinates.size() / dimension_;
  output.check(count);
  const std::shared_lock lock(mutex_);
  const ConformalIntervals::Calibration calibration = output.calibration_by(calibration_);
  for (std::size_t row = 0; row < count; ++row) {
    const Neighbor nearest = centers_.points.nearest(coordinates.subspan(row * dimension_, dimension_));
    output.write(row, centers_.mean(nearest.position), calibration);
  }
}

double PackingCore::predict_one(std::span<const double> point) const {
  const std::shared_lock lock(mutex_);
  const Neighbor nearest = centers_.points.nearest(point);
  if (clock_ > 0) {
    const std::scoped_lock search_lock(last_search_mutex_);
    last_search_.clock = -1;
    last_search_.point.assign(point.begin(), point.end());
    last_search_.nearest = nearest;
    last_search_.clock = clock_;
  }
  return centers_.mean(nearest.position);
}

std::size_t PackingCore::size() const {
  const std::shared_lock lock(mutex_);
  return centers_.size();
}

std::int64_t PackingCore::clock() const {
  const std::shared_lock lock(mutex_);
  return clock_;
}

DeferredCalibration PackingCore::calibration() const {
  const std::shared_lock lock(mutex_);
  return calibration_;
}

void PackingCore::set_calibration(const DeferredCalibration& calibration) {
  const std::unique_lock lock(mutex_);
  calibration_ = calibration;
}

}  // namespace ellipack
