// The radius of Algorithm 1: t^(-1 / (1 + rank)) in round t, where rank is the effective rank in round t.
#pragma once

#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ellipack {

// Compares distances with the radius of a round. Rounds must not decrease from call to call.
class RadiusSchedule {
 public:
  // Number of rounds that share a lower bound on the radius, and a margin for rounding errors of std::pow.
  static constexpr std::int64_t rounds_per_bound = 256;
  static constexpr double bound_margin = 1e-9;

  // `rank_starts` are the rounds in which the effective rank increases to 2, 3 and so on, in ascending order.
  explicit RadiusSchedule(std::vector<std::int64_t> rank_starts) : rank_starts_(std::move(rank_starts)) {}

  std::span<const std::int64_t> rank_starts() const { return rank_starts_; }

  // Returns whether a squared distance exceeds the squared radius of a round.
  bool is_beyond(double squared_distance, std::int64_t round) {
    assert(round >= 1 && round >= last_round_);
    last_round_ = round;
    while (rank_ <= rank_starts_.size() && rank_starts_[rank_ - 1] <= round) {
      ++rank_;
    }
    if (round > bound_holds_until_) {  // radii decrease with the round and increase with the rank
      bound_holds_until_ = round + rounds_per_bound;
      lower_bound_ = radius(bound_holds_until_) * (1.0 - bound_margin);
    }
    // Comparing with the lower bound first avoids most calls of std::pow.
    const double distance = std::sqrt(squared_distance);
    return distance > lower_bound_ && distance > radius(round);
  }

 private:
  double radius(std::int64_t round) const {
    return std::pow(static_cast<double>(round), -1.0 / (1.0 + static_cast<double>(rank_)));
  }

  std::vector<std::int64_t> rank_starts_;
  std::size_t rank_ = 1;
  std::int64_t last_round_ = 0;
  std::int64_t bound_holds_until_ = 0;
  double lower_bound_ = 0.0;
};

}  // namespace ellipack
