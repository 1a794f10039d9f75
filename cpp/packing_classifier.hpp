// Mistake-driven classification over packings, in whitened coordinates: Algorithm 1 of the paper, run on mistakes only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <shared_mutex>
#include <span>
#include <vector>

#include "fair_shared_mutex.hpp"
#include "packing_core.hpp"

namespace ellipack {

// One packing for each class that is told from the rest. Each packing predicts the mean label of the nearest center,
// where the label is 1 for rows of its class and 0 for others. A prediction above 1/2 stands for the class. If it is
// right, nothing changes; if not, the packing runs a round of Algorithm 1, whose clock counts mistakes.
//
// Threads may predict while one learns. Calls take effect in the order in which they start.
class PackingClassifierCore {
 public:
  PackingClassifierCore(std::size_t dimension, std::vector<std::int64_t> rank_starts, std::size_t packings,
                        bool ball_clocks);

  // Restores packings. If `ball_clocks`, the radius of a ball depends on its own mistakes; otherwise on those of all
  // balls. Throws std::invalid_argument if no sequence of rounds leads to a packing.
  PackingClassifierCore(std::vector<PackingCenters> packings, std::vector<std::int64_t> rank_starts, bool ball_clocks);

  PackingClassifierCore(const PackingClassifierCore& other);
  PackingClassifierCore& operator=(const PackingClassifierCore&) = delete;

  // Runs one round per row. `labels` holds the packing of the class of each row, or -1 if its class has none. Returns
  // the prediction of each packing (row, packing), made before the label was learned.
  std::vector<double> learn(std::span<const double> coordinates, std::span<const std::int64_t> labels);

  // Returns the prediction of each packing (row, packing); 1/2 before its first mistake.
  std::vector<double> predict(std::span<const double> coordinates) const;

  std::size_t dimension() const { return dimension_; }
  std::size_t packing_count() const { return packings_.size(); }
  bool ball_clocks() const { return ball_clocks_; }
  std::span<const std::int64_t> rank_starts() const { return rank_starts_; }

  // Returns the number of mistakes of each packing.
  std::vector<std::int64_t> mistakes() const;

  // Returns a copy of each packing.
  std::vector<PackingCenters> packings() const;

 private:
  // Copies another core while `lock` protects it.
  PackingClassifierCore(const PackingClassifierCore& other, const std::shared_lock<FairSharedMutex>& lock);

  // What a row changes in a packing.
  struct Round {
    double prediction = 0.5;
    bool is_class = false;
    bool is_mistake = false;
    bool adds_center = false;
    std::size_t center = 0;  // that gets the label, if none is added
  };

  // The caller holds the lock. A row changes all packings or, if there is not enough memory, none: all are prepared
  // first.
  Round prepare_round(std::size_t packing, std::span<const double> point, bool is_class);
  void complete_round(std::size_t packing, std::span<const double> point, const Round& round);
  bool is_beyond(double squared_distance, std::int64_t round) const;

  std::size_t dimension_;
  std::vector<std::int64_t> rank_starts_;
  bool ball_clocks_;
  mutable FairSharedMutex mutex_;  // guards the members below
  std::vector<PackingCenters> packings_;
  std::vector<std::int64_t> mistakes_;
};

}  // namespace ellipack
