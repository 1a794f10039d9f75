// Feature views: how a row becomes coordinates. Outliers are clipped; features are taken as they are or by their ranks,
// brought to standard units and projected on the directions of the view's metric.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "copy_on_write.hpp"

namespace ellipack {

// Running statistics of the labels.
struct LabelStatistics {
  double mean = 0.0;
  double squares = 0.0;  // the sum of squared deviations from the mean
  double low = 0.0;      // of labels that were no outliers, as is the next
  double high = 0.0;
  double outliers = 0.0;  // in the phase, and half of those before
  double count = 0.0;     // labels that were no outliers

  // Throws std::invalid_argument unless these are finite statistics of some labels, or of none.
  void check() const;

  void update(double label);
};

// Running statistics of each feature.
struct FeatureStatistics {
  explicit FeatureStatistics(std::size_t dimension)
      : mean(dimension), squares(dimension), low(dimension), high(dimension), outliers(dimension) {}

  std::vector<double> mean;
  std::vector<double> squares;
  std::vector<double> low;
  std::vector<double> high;
  std::vector<double> outliers;

  // Throws std::invalid_argument unless there is an entry for each feature and all are finite.
  void check() const;

  // Takes in a row whose outliers were clipped, as the `count`-th.
  void update(std::span<const double> row, std::span<const double> clipped, double count);
};

// Labels that are taken as they come: the range of fewer says too little.
inline constexpr double labels_before_outliers = 5.0;

// Standard deviations at which a feature is clipped: beyond any sense, well within what squares can bear.
inline constexpr double largest_standard = 1e6;

// The largest entry of a direction: with it, coordinates and the squares of their differences are finite.
inline constexpr double largest_direction = 1e50;

// Whether a value is too far from the range of those before to be believed: more than 3 * 10^outliers widths of it.
// While all values are equal there are no outliers.
bool is_outlier(double value, double low, double high, double outliers);

// Fills in a row whose outliers are moved to one width of the feature's range beyond it.
void clip_outliers(const FeatureStatistics& features, std::span<const double> row, std::span<double> clipped);

// A view of the features, and a metric on it.
struct FeatureView {
  std::size_t dimension = 0;      // features
  std::size_t rank = 0;           // coordinates
  std::size_t fit_dimension = 0;  // leading coordinates that local linear fits use
  std::vector<double> knots;      // rows of values between which ranks are interpolated; none: features as they are
  std::vector<double> shift;      // with `scale`, takes features or ranks to standard units
  std::vector<double> scale;
  std::vector<double> directions;  // dimension x rank: the orthogonal columns that standard units are projected on
  CopyOnWrite<std::vector<double>>
      gop;  // the sum of outer products of slopes in standard units since the phase began; empty if 0

  // Throws std::invalid_argument unless sizes fit together and all but the gradient outer product is finite.
  void check() const;

  std::size_t knot_count() const { return knots.size() / dimension; }

  // Fills in a row in standard units.
  void standardize(std::span<const double> row, std::span<double> standard) const;

  // Adds the outer product of the slope of a local fit. Along directions that take no part in local fits, the slope is
  // that of the ridge regression, `linear`. `gradient` is a buffer.
  void add_slope(std::span<const double> slope, std::span<const double> linear, std::span<double> gradient);

 private:
  double rank_of(double value, std::size_t feature) const;
};

}  // namespace ellipack
