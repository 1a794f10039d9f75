// Feature views: the map from a row to coordinates. Outliers are clipped first. A view then replaces features by their
// ranks if it has knots, standardizes them and projects them on the directions of its metric.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "copy_on_write.hpp"

namespace ellipack {

// Running statistics of the labels.
struct LabelStatistics {
  double mean = 0.0;
  double squares = 0.0;   // sum of squared deviations from the mean
  double low = 0.0;       // smallest label, outliers excluded
  double high = 0.0;      // largest label, outliers excluded
  double outliers = 0.0;  // outliers in the current phase, plus half of the value before it
  double count = 0.0;     // number of labels, outliers excluded

  // Throws std::invalid_argument unless the statistics are finite and consistent.
  void check() const;

  // Updates the statistics by a label that is no outlier.
  void update(double label);
};

// Running statistics of each feature.
struct FeatureStatistics {
  explicit FeatureStatistics(std::size_t dimension)
      : mean(dimension), squares(dimension), low(dimension), high(dimension), outliers(dimension) {}

  std::vector<double> mean;
  std::vector<double> squares;  // sums of squared deviations from the mean
  std::vector<double> low;
  std::vector<double> high;
  std::vector<double> outliers;

  // Throws std::invalid_argument unless all statistics are finite and have one entry per feature.
  void check() const;

  // Updates the statistics by a row and its clipped version. `count` is the number of rows including this one.
  void update(std::span<const double> row, std::span<const double> clipped, double count);
};

// Number of labels before outliers are detected: the range of fewer labels is too uncertain.
inline constexpr double labels_before_outliers = 5.0;

// Largest standardized feature, in absolute value. Its squares do not overflow.
inline constexpr double largest_standard = 1e6;

// Largest entry of a direction. With this bound, coordinates and squares of their differences are finite.
inline constexpr double largest_direction = 1e50;

// Returns whether a value is outside of the range of the values before by more than 3 * 10^outliers times its width. As
// long as the range has no width, no value is an outlier.
bool is_outlier(double value, double low, double high, double outliers);

// Copies a row and clips outliers to the range of the feature, extended by its width on both sides.
void clip_outliers(const FeatureStatistics& features, std::span<const double> row, std::span<double> clipped);

// A view of the features, with a metric.
struct FeatureView {
  std::size_t dimension = 0;      // number of features
  std::size_t rank = 0;           // number of coordinates
  std::size_t fit_dimension = 0;  // number of leading coordinates that local linear fits use
  std::vector<double> knots;      // rows of values that define ranks; empty if features are not ranked
  std::vector<double> shift;      // standardized features are (feature or rank - shift) / scale
  std::vector<double> scale;
  std::vector<double> directions;  // dimension x rank; orthogonal columns on which standardized rows are projected
  // Sum of outer products of the standardized slopes in this phase; empty if there are none. While there are at most
  // `max_slopes`, which is less than `dimension`, it has the slopes instead, one per row.
  CopyOnWrite<std::vector<double>> gop;
  std::size_t max_slopes = 0;

  // Throws std::invalid_argument unless sizes match and all values except `gop` are finite.
  void check() const;

  std::size_t knot_count() const { return knots.size() / dimension; }

  // Standardizes a row.
  void standardize(std::span<const double> row, std::span<double> standard) const;

  // Allocates what `add_gradient` needs, so that it does not throw.
  void make_room();

  // What `find_gradient` writes.
  struct GradientBuffers {
    std::span<double> gradient;  // one entry per feature
    std::span<double> fit;       // three entries per coordinate of local fits
  };

  // Computes the gradient by standardized features. `slope` is the slope of a local linear fit; along the other
  // directions, the slope is that of the global ridge regression, `linear`.
  void find_gradient(std::span<const double> slope, std::span<const double> linear,
                     const GradientBuffers& buffers) const;

  // Adds a gradient, or its outer product, to `gop`.
  void add_gradient(std::span<const double> gradient);

  // Computes `gop`, which may have slopes, in units that are `ratio` times as large, entry by entry.
  void convert_gop(std::span<const double> ratio, std::span<double> converted) const;

 private:
  // Returns whether `gop` has slopes after another one has been added.
  bool keeps_next_slope() const { return gop->size() < max_slopes * dimension; }

  double rank_of(double value, std::size_t feature) const;
};

}  // namespace ellipack
