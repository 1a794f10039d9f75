// Algorithm 1 of the paper: online regression over a packing, in coordinates where the metric is Euclidean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <vector>

#include "fair_shared_mutex.hpp"
#include "kd_tree.hpp"
#include "radius_schedule.hpp"

namespace ellipack {

// The packing: centers in the order of their founding, each with the count and the sum of the labels that it absorbed.
struct PackingCenters {
  KdTree points;
  std::vector<double> label_sums;
  std::vector<std::int64_t> label_counts;
  std::vector<std::int64_t> creation_rounds;  // round in which each center was added

  explicit PackingCenters(std::size_t dimension);

  // Restores centers. Throws std::invalid_argument unless the arrays have one entry a center, coordinates and sums are
  // finite, counts are not negative and the rounds of founding rise from 1 or later.
  PackingCenters(std::span<const double> coordinates, std::size_t dimension, std::vector<double> sums,
                 std::vector<std::int64_t> counts, std::vector<std::int64_t> rounds);

  std::size_t size() const { return label_sums.size(); }

  // Adds a center without labels and returns its position. If it throws, nothing has changed.
  std::size_t add(std::span<const double> point, std::int64_t round);

  void add_label(std::size_t center, double label) {
    label_sums[center] += label;
    ++label_counts[center];
  }

  // The mean label of a center; 1/2 if there is no center (-1) or it has no labels.
  double mean(std::int32_t center) const {
    if (center < 0 || label_counts[static_cast<std::size_t>(center)] == 0) {
      return 0.5;
    }
    const auto at = static_cast<std::size_t>(center);
    return label_sums[at] / static_cast<double>(label_counts[at]);
  }
};

// Algorithm 1 with all that it carries from round to round. Threads may predict while one learns: a call waits for the
// calls before it, and sees the state that they left.
class PackingCore {
 public:
  PackingCore(std::size_t dimension, std::vector<std::int64_t> rank_starts);

  // Restores the state after `clock` rounds. Throws std::invalid_argument if that many rounds cannot lead to it.
  PackingCore(PackingCenters centers, std::vector<std::int64_t> rank_starts, std::int64_t clock);

  PackingCore(const PackingCore& other);
  PackingCore& operator=(const PackingCore&) = delete;

  // Plays one round a row of `coordinates`; returns the predictions, each made before its label was seen. A new center
  // absorbs the label of the row that founds it only if `keep_founding_label`.
  std::vector<double> learn(std::span<const double> coordinates, std::span<const double> labels,
                            bool keep_founding_label);

  // The prediction for each row of `coordinates` as things stand: 1/2 before the first round.
  std::vector<double> predict(std::span<const double> coordinates) const;

  // One row. `learn_one` does not repeat the search of a `predict_one` for the same row in the same round.
  double learn_one(std::span<const double> point, double label, bool keep_founding_label);
  double predict_one(std::span<const double> point) const;

  std::size_t dimension() const { return dimension_; }
  std::size_t size() const;
  std::int64_t clock() const;
  std::span<const std::int64_t> rank_starts() const { return radius_.rank_starts(); }

  // What `look(centers, clock)` returns, with both as they are after a whole round.
  template <typename Function>
  auto inspect(Function function) const {
    const std::shared_lock lock(mutex_);
    return function(centers_, clock_);
  }

 private:
  struct Search {
    std::int64_t clock = -1;
    std::vector<double> point;
    Neighbor nearest;
  };

  // A copy, while `lock` keeps the other one as it is.
  PackingCore(const PackingCore& other, const std::shared_lock<FairSharedMutex>& lock);

  // The lock must be held.
  double run_round(std::span<const double> point, double label, bool keep_founding_label);
  Neighbor find_nearest(std::span<const double> point) const;

  std::size_t dimension_;
  mutable FairSharedMutex mutex_;  // of all that follows
  PackingCenters centers_;
  RadiusSchedule radius_;
  std::int64_t clock_ = 0;
  mutable std::mutex last_search_mutex_;
  mutable Search last_search_;
};

}  // namespace ellipack
