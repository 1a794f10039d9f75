// The radius of Algorithm 1: round t has the radius t^(-1 / (1 + rank)), where rank is the effective rank at round t.
#pragma once

#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ellipack {

// Compares distances with the radius of a round. Rounds must be asked for in rising order.
class RadiusSchedule {
 public:
  // Rounds for which one lower bound on the radius serves, and a margin above the rounding of std::pow.
  static constexpr std::int64_t rounds_per_bound = 256;
  static constexpr double bound_margin = 1e-9;

  // `rank_starts` are the rounds at which the effective rank rises to 2, 3 and so on, in rising order.
  explicit RadiusSchedule(std::vector<std::int64_t> rank_starts) : rank_starts_(std::move(rank_starts)) {}

  std::span<const std::int64_t> rank_starts() const { return rank_starts_; }

  // Whether a point at this squared distance lies beyond the radius of a round.
  bool is_beyond(double squared_distance, std::int64_t round) {
    assert(round >= 1 && round >= last_round_);
    last_round_ = round;
    while (rank_ <= rank_starts_.size() && rank_starts_[rank_ - 1] <= round) {
      ++rank_;
    }
    if (round > bound_holds_until_) {  // Radii fall with the round and rise with the rank.
      bound_holds_until_ = round + rounds_per_bound;
      lower_bound_ = radius(bound_holds_until_) * (1.0 - bound_margin);
    }
    // A power takes longer than a comparison with a bound, which mostly decides.
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
