// Ordinary kriging of several systems at once, one in each lane of a vector.
#pragma once

#include <cstddef>

#include "batched_cholesky.hpp"
#include "simd.hpp"

namespace ellipack {

// Right-hand sides of a kriging system: correlations with the query, labels, ones.
inline constexpr std::size_t kriging_right_sides = 3;

// Smallest distance of the farthest neighbor, to avoid division by 0.
inline constexpr double min_farthest = 1e-150;

// Returns the best linear unbiased predictions at the queries of systems that `factor` has factored. Before that, row i
// of a system had the correlations of neighbor i with the `count` neighbors and then the right-hand sides, which the
// factorization includes. The mean by generalized least squares and the prediction are then sums of products.
template <typename V>
V predict_at_queries(const simd::Lane<V>* systems, std::size_t count) {
  constexpr int lanes = simd::lane_count<V>;
  const std::size_t width = count + kriging_right_sides;
  const auto entry = [&](std::size_t i, std::size_t j) { return simd::load<V>(systems + (i * width + j) * lanes); };
  V ones{};
  V mean{};
  for (std::size_t i = 0; i < count; ++i) {
    const V one = entry(i, count + 2);
    ones += one * one;
    mean += one * entry(i, count + 1);
  }
  mean /= ones;
  V prediction = mean;
  for (std::size_t i = 0; i < count; ++i) {
    const V one = entry(i, count + 2);
    prediction += entry(i, count) * (entry(i, count + 1) - mean * one);
  }
  return prediction;
}

}  // namespace ellipack
