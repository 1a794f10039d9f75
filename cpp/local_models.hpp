// Local models: what the neighbors of a query predict for it, by means, local linear fits and kriging.
//
// All are safe for any neighborhood of at least one neighbor: duplicates, equal labels, coordinates that never vary.
// Labels are differences from the nearest neighbor's, so that a large common part costs no precision.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "simd.hpp"

namespace ellipack {

// The neighbors of a query, nearest first.
struct Neighborhood {
  Neighborhood(std::size_t capacity, std::size_t dimension);

  std::size_t count = 0;
  std::size_t dimension;
  std::vector<double> squared_distances;
  std::vector<double> labels;            // mean labels, less the nearest neighbor's
  std::vector<double> label_counts;      // how many labels each mean is of
  std::vector<double> ages;              // rounds since the labels came, on average, as a part of all rounds
  std::vector<double> trend;             // the ridge regression at each neighbor, less that at the query
  std::vector<double> forgetting_trend;  // the same for the ridge regression that forgets
  std::vector<double> offsets;           // coordinates less the query's, a row each

  std::span<const double> offset(std::size_t j) const { return {offsets.data() + j * dimension, dimension}; }
  std::span<double> offset(std::size_t j) { return {offsets.data() + j * dimension, dimension}; }
};

// The mean label of the nearest neighbors, `count` of them.
double mean_label(const Neighborhood& near, std::size_t count);

// Weighted linear fits around a query, by two ridge penalties. The weights fall to 0 at the last neighbor.
class LocalLinearFits {
 public:
  static constexpr int fits = 2;

  // The fits use the first `fit_dimension` coordinates of neighborhoods of at most `capacity` neighbors.
  LocalLinearFits(std::size_t capacity, std::size_t fit_dimension);

  // Fills in the fits' predictions at the query, and the slope of the first fit.
  void predict(const Neighborhood& near, std::span<double> predictions, std::span<double> slope);

 private:
  double accumulate(const Neighborhood& near, std::size_t count);
  void center(const Neighborhood& near, std::size_t first, std::size_t count, double label);
  void solve(double label, std::span<double> predictions, std::span<double> slope);

  std::size_t fit_dimension_;
  std::size_t stride_;  // of the Gram matrix: a row and its right-hand side, rounded up to full vectors
  std::vector<double> weights_;
  std::vector<double> mean_;  // weighted, of the offsets
  double min_trace_ = 0.0;    // of the Gram matrix: below, neighbors differ by rounding alone
  simd::AlignedVector<double> gram_;
  simd::AlignedVector<double> centered_;  // offsets and labels of four neighbors, less their means
  simd::AlignedVector<double> systems_;
  std::vector<double> slopes_;
};

// Ordinary kriging from the nearest neighbors, four covariances at once.
class Kriging {
 public:
  static constexpr int lanes = 4;

  Kriging(std::size_t capacity, std::size_t dimension);

  // Kriging by four correlations of the distance: exponential and Matern 3/2, each short and long.
  void predict_by_distance(const Neighborhood& near, std::span<double> predictions);

  // Kriging of residuals about the trends by the long Matern correlation. The first is about `trend`, in space alone;
  // the others are about `forgetting_trend`, in space and time. To be called after `predict_by_distance`.
  void predict_by_distance_and_age(const Neighborhood& near, std::span<double> predictions);

 private:
  double* entry(std::size_t i, std::size_t j) { return systems_.data() + (i * width_ + j) * lanes; }
  void fill_correlations(const Neighborhood& near);
  void fill_aged_correlations(const Neighborhood& near);
  void set_diagonal_and_right_sides(std::size_t row, simd::Double4 nugget, simd::Double4 label);
  void solve(std::span<double> predictions);

  std::size_t capacity_;
  std::size_t count_ = 0;                // neighbors in use
  std::size_t width_ = 0;                // of the systems: the neighbors, the query, labels and ones
  simd::AlignedVector<double> columns_;  // the offsets by coordinate; the query stands behind the last neighbor, at 0
  simd::AlignedVector<double> systems_;
  simd::AlignedVector<double> long_matern_;
  std::vector<double> ages_;
};

// All local experts on one neighborhood.
class LocalModels {
 public:
  // The experts: a mean, the linear fits, kriging by distance, kriging by distance and age.
  static constexpr std::size_t experts = 1 + LocalLinearFits::fits + 2 * Kriging::lanes;

  // How many neighbors a linear fit of so many coordinates uses.
  static constexpr std::size_t neighbors_of_fit(std::size_t fit_dimension) { return 2 * fit_dimension + 10; }

  LocalModels(std::size_t neighbors, std::size_t fit_dimension, std::size_t dimension);

  // Fills in the predictions of all experts, as differences from the nearest neighbor's label, and the slope of the
  // first linear fit.
  void predict(const Neighborhood& near, std::span<double> predictions, std::span<double> slope);

 private:
  LocalLinearFits linear_;
  Kriging kriging_;
};

}  // namespace ellipack
