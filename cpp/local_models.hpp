// Local models: predictions from the neighbors of a query, by means, local linear fits and kriging.
//
// Results are finite for any neighborhood of at least one neighbor, including duplicates, equal labels and constant
// coordinates. Labels are relative to that of the nearest neighbor, so that a large common offset costs no precision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "simd.hpp"

namespace ellipack {

// The neighbors of a query, sorted by distance.
struct Neighborhood {
  Neighborhood(std::size_t capacity, std::size_t dimension);

  std::size_t count = 0;
  std::size_t dimension;
  double base = 0.0;  // mean label of the nearest neighbor
  std::vector<double> squared_distances;
  std::vector<double> labels;            // mean labels, relative to the base
  std::vector<double> label_counts;      // number of labels of each mean
  std::vector<double> ages;              // mean age of the labels, as a fraction of all rounds
  std::vector<double> trend;             // global ridge regression at each neighbor, minus that at the query
  std::vector<double> forgetting_trend;  // the same for the ridge regression with forgetting
  std::vector<double> offsets;           // coordinates minus those of the query, one row per neighbor

  std::span<const double> offset(std::size_t j) const { return {offsets.data() + j * dimension, dimension}; }
  std::span<double> offset(std::size_t j) { return {offsets.data() + j * dimension, dimension}; }
};

// Returns the mean label of the `count` nearest neighbors.
double mean_label(const Neighborhood& near, std::size_t count);

// Weighted linear fits around a query with two ridge penalties. Weights decrease to 0 at the farthest neighbor.
class LocalLinearFits {
 public:
  static constexpr int fits = 2;

  // The fits use the first `fit_dimension` coordinates of neighborhoods of at most `capacity` neighbors.
  LocalLinearFits(std::size_t capacity, std::size_t fit_dimension);

  // Sets the systems of both fits, as `factor` expects them, with one right-hand side.
  void fill(const Neighborhood& near);

  std::size_t dimension() const { return fit_dimension_; }
  double* systems() { return systems_.data(); }

  // Computes the predictions of both fits at the query, and the slope of the first fit, from the factored systems.
  void predict(std::span<double> predictions, std::span<double> slope);

 private:
  void accumulate(const Neighborhood& near, std::size_t count);
  void center(const Neighborhood& near, std::size_t first, std::size_t count, double label);
  void set_systems();

  std::size_t fit_dimension_;
  std::size_t stride_;  // row length of gram_, with the right-hand side, rounded up to full vectors
  std::vector<double> weights_;
  std::vector<double> mean_;  // weighted mean of the offsets
  double mean_label_ = 0.0;   // weighted
  double min_trace_ = 0.0;    // up to this trace of gram_, neighbors differ only by rounding
  simd::AlignedVector<double> gram_;
  simd::AlignedVector<double> centered_;  // centered offsets and labels of four neighbors
  simd::AlignedVector<double> systems_;
  std::vector<double> slopes_;
};

// Systems of ordinary kriging from the nearest neighbors, with eight covariances.
//
// The first four predictions use correlations of the distance: exponential and Matern 3/2, each short and long. The
// last four krige residuals with the long Matern correlation: one about `trend`, with correlations in space, and three
// about `forgetting_trend`, with correlations in space and time.
class KrigingSystems {
 public:
  static constexpr std::size_t covariances = 8;

  KrigingSystems(std::size_t capacity, std::size_t dimension);

  // Sets all systems, as `factor` expects them.
  void fill(const Neighborhood& near);

  // Returns the number of neighbors in each system.
  std::size_t count() const { return count_; }

  // Returns the systems that are solved at once, of which `first` is the first.
  double* batch(std::size_t first);

 private:
  // The four systems by distance, and the four by distance and age.
  enum Half : std::uint8_t { by_distance, by_distance_and_age };

  double* entry(Half half, std::size_t i, std::size_t j);
  void copy_columns(const Neighborhood& near);
  void fill_correlations(double farthest, std::size_t dimension);
  void set_diagonal_and_right_sides(Half half, std::size_t row, simd::Double4 nugget, simd::Double4 label);

  std::size_t capacity_;
  std::size_t count_ = 0;                // number of neighbors used
  std::size_t width_ = 0;                // row length of the systems: neighbors and right-hand sides
  std::size_t stride_;                   // length of a column: neighbors, the query, and padding of one vector
  simd::AlignedVector<double> columns_;  // ages, then offsets by coordinate; the query follows the last neighbor
  simd::AlignedVector<double> systems_;
};

// All local experts on one neighborhood.
class LocalModels {
 public:
  // Number of experts: a mean, the linear fits, kriging.
  static constexpr std::size_t experts = 1 + LocalLinearFits::fits + KrigingSystems::covariances;

  // Number of neighbors in a linear fit.
  static constexpr std::size_t neighbors_of_fit(std::size_t fit_dimension) { return 2 * fit_dimension + 10; }

  LocalModels(std::size_t neighbors, std::size_t fit_dimension, std::size_t dimension);

  // Computes the predictions of all experts and the slope of the first linear fit.
  void predict(const Neighborhood& near, std::span<double> predictions, std::span<double> slope);

 private:
  LocalLinearFits linear_;
  KrigingSystems kriging_;
};

}  // namespace ellipack
