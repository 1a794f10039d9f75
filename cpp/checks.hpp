// Checks of input. They run once, so that loops need not check again.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>

namespace ellipack {

// Largest number of rounds and labels. Sums of such counts are exact as doubles, and counters do not overflow.
inline constexpr std::int64_t largest_count = std::int64_t{1} << 52;

// Throws std::invalid_argument unless a rule holds.
inline void require(bool holds, const char* rule) {
  if (!holds) {
    throw std::invalid_argument(rule);
  }
}

inline bool all_finite(std::span<const double> values) {
  return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
}

// Returns whether the absolute value of all entries is at most `largest`; false for NaN.
inline bool all_within(std::span<const double> values, double largest) {
  return std::ranges::all_of(values, [largest](double value) { return std::abs(value) <= largest; });
}

// Returns whether all entries are finite and from `least` to `most`; false for NaN.
inline bool all_between(std::span<const double> values, double least, double most) {
  const double low = std::max(least, std::numeric_limits<double>::lowest());
  const double high = std::min(most, std::numeric_limits<double>::max());
  return std::ranges::all_of(values, [low, high](double value) { return value >= low && value <= high; });
}

inline bool all_counts(std::span<const std::int64_t> values) {
  return std::ranges::all_of(values, [](std::int64_t value) { return value >= 1 && value <= largest_count; });
}

}  // namespace ellipack
