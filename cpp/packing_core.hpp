// Algorithm 1 of the paper: online regression over a packing, in whitened coordinates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <vector>

#include "deferred_calibration.hpp"
#include "fair_shared_mutex.hpp"
#include "kd_tree.hpp"
#include "prediction_output.hpp"
#include "radius_schedule.hpp"

namespace ellipack {

// The centers of the packing in the order of their creation, each with the number and the sum of its labels.
struct PackingCenters {
  KdTree points;
  std::vector<double> label_sums;
  std::vector<std::int64_t> label_counts;
  std::vector<std::int64_t> creation_rounds;  // round in which each center was added

  explicit PackingCenters(std::size_t dimension);

  // Restores centers. Throws std::invalid_argument unless the arrays have one entry per center, coordinates and sums
  // are finite, counts are in range, and creation rounds are >= 1 and strictly increasing.
  PackingCenters(std::span<const double> coordinates, std::size_t dimension, std::vector<double> sums,
                 std::vector<std::int64_t> counts, std::vector<std::int64_t> rounds);

  std::size_t size() const { return label_sums.size(); }

  // Allocates what `add` needs for a point, so that it does not throw.
  void make_room(std::span<const double> point);

  // Adds a center without labels and returns its position. If it throws, nothing has changed.
  std::size_t add(std::span<const double> point, std::int64_t round);

  void add_label(std::size_t center, double label) {
    label_sums[center] += label;
    ++label_counts[center];
  }

  // Returns the mean label of a center; 1/2 if it has no labels or there is no center (-1).
  double mean(std::int32_t center) const {
    if (center < 0 || label_counts[static_cast<std::size_t>(center)] == 0) {
      return 0.5;
    }
    const auto at = static_cast<std::size_t>(center);
    return label_sums[at] / static_cast<double>(label_counts[at]);
  }
};

// Algorithm 1 with its state. Threads may predict while one learns. Calls take effect in the order in which they start.
class PackingCore {
 public:
  PackingCore(std::size_t dimension, std::vector<std::int64_t> rank_starts);

  // Restores the state after `clock` rounds. Throws std::invalid_argument if no sequence of `clock` rounds leads to it.
  PackingCore(PackingCenters centers, std::vector<std::int64_t> rank_starts, std::int64_t clock,
              const DeferredCalibration& calibration);

  PackingCore(const PackingCore& other);
  PackingCore& operator=(const PackingCore&) = delete;

  // Runs one round per row of `coordinates`. Writes the predictions and intervals, each made before its label was
  // learned. If `keep_founding_label`, a new center gets the label of the row that created it.
  void learn(std::span<const double> coordinates, std::span<const double> labels, bool keep_founding_label,
             const PredictionOutput& output);

  // Writes the prediction and intervals of each row of `coordinates`; 1/2 before the first round.
  void predict(std::span<const double> coordinates, const PredictionOutput& output) const;

  // The same for one row. `learn_one` reuses the search of a `predict_one` for the same row in the same round.
  double learn_one(std::span<const double> point, double label, bool keep_founding_label);
  double predict_one(std::span<const double> point) const;

  std::size_t dimension() const { return dimension_; }
  std::size_t size() const;
  std::int64_t clock() const;
  std::span<const std::int64_t> rank_starts() const { return radius_.rank_starts(); }

  DeferredCalibration calibration() const;
  void set_calibration(const DeferredCalibration& calibration);

  // Returns `function(centers, clock, calibration)`, called between two rounds.
  template <typename Function>
  auto inspect(Function function) const {
    const std::shared_lock lock(mutex_);
    return function(centers_, clock_, calibration_);
  }

 private:
  // The last search of `predict_one`, after `clock` rounds.
  struct Search {
    std::int64_t clock = -1;
    std::vector<double> point;
    Neighbor nearest;
  };

  // Copies another core while `lock` protects it.
  PackingCore(const PackingCore& other, const std::shared_lock<FairSharedMutex>& lock);

  // The caller holds the lock.
  double run_round(std::span<const double> point, double label, bool keep_founding_label);
  Neighbor find_nearest(std::span<const double> point) const;

  std::size_t dimension_;
  mutable FairSharedMutex mutex_;  // guards the members below
  PackingCenters centers_;
  RadiusSchedule radius_;
  std::int64_t clock_ = 0;
  DeferredCalibration calibration_;
  mutable std::mutex last_search_mutex_;
  mutable Search last_search_;
};

}  // namespace ellipack
