#include "feature_views.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "checks.hpp"
#include "reserve_more.hpp"

namespace ellipack {

namespace {

constexpr double outlier_widths = 3.0;

// Adds the outer product of a vector with itself to a matrix.
void add_outer_product(std::span<const double> vector, std::span<double> sum) {
  for (std::size_t i = 0; i < vector.size(); ++i) {
    const double factor = vector[i];
    double* row = sum.data() + i * vector.size();
    for (std::size_t j = 0; j < vector.size(); ++j) {
      row[j] += factor * vector[j];
    }
  }
}

// Replaces slopes by the sum of their outer products.
void sum_slopes(std::size_t dimension, std::vector<double>& entries) {
  const std::size_t used = entries.size();
  entries.resize(used + dimension * dimension, 0.0);
  const std::span all(entries);
  for (std::size_t first = 0; first < used; first += dimension) {
    add_outer_product(all.subspan(first, dimension), all.subspan(used));
  }
  entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(used));
}

}  // namespace

void LabelStatistics::check() const {
  const std::array values = {mean, squares, low, high, outliers, count};
  require(all_finite(values), "the statistics of labels must be finite");
  require(squares >= 0.0 && outliers >= 0.0 && count >= 0.0, "the statistics of labels must not be negative");
  require(low <= high, "the smallest label must be <= the largest");
}

void LabelStatistics::update(double label) {
  low = count == 0.0 ? label : std::min(low, label);
  high = count == 0.0 ? label : std::max(high, label);
  count += 1.0;
  const double change = label - mean;
  mean += change / count;
  squares += change * (label - mean);
}

void FeatureStatistics::check() const {
  const std::size_t d = mean.size();
  require(squares.size() == d && low.size() == d && high.size() == d && outliers.size() == d,
          "the statistics of features must have one entry per feature");
  require(all_finite(mean) && all_finite(squares) && all_finite(low) && all_finite(high) && all_finite(outliers),
          "the statistics of features must be finite");
}

void FeatureStatistics::update(std::span<const double> row, std::span<const double> clipped, double count) {
  const bool first = count == 1.0;
  for (std::size_t k = 0; k < row.size(); ++k) {
    const double change = clipped[k] - mean[k];
    mean[k] += change / count;
    squares[k] += change * (clipped[k] - mean[k]);
    if (clipped[k] != row[k]) {
      outliers[k] += 1.0;
    } else {
      low[k] = first ? row[k] : std::min(low[k], row[k]);
      high[k] = first ? row[k] : std::max(high[k], row[k]);
    }
  }
}

bool is_outlier(double value, double low, double high, double outliers) {
  double width = outlier_widths * (high - low);
  if (width <= 0.0 || (low - width <= value && value <= high + width)) {
    return false;
  }
  width *= std::pow(10.0, outliers);
  return value < low - width || value > high + width;
}

void clip_outliers(const FeatureStatistics& features, std::span<const double> row, std::span<double> clipped) {
  for (std::size_t k = 0; k < row.size(); ++k) {
    const double low = features.low[k];
    const double high = features.high[k];
    clipped[k] = row[k];
    if (is_outlier(row[k], low, high, features.outliers[k])) {
      clipped[k] = std::min(std::max(row[k], low - (high - low)), high + (high - low));
    }
  }
}

void FeatureView::check() const {
  const std::size_t d = dimension;
  require(d >= 1, "a view must have at least one feature");
  require(rank >= 1 && rank <= d, "a view must have at least one coordinate and at most one per feature");
  require(fit_dimension >= 1 && fit_dimension <= rank, "fit_dimension must be from 1 to the number of coordinates");
  require(knots.size() % d == 0 && (knots.empty() || knots.size() >= 2 * d),
          "knots must be empty or have at least two rows");
  require(shift.size() == d && scale.size() == d, "shift and scale must have one entry per feature");
  require(directions.size() == d * rank, "directions must have one row per feature");
  require(max_slopes < d, "max_slopes must be less than the number of features");
  require(gop->size() == d * d || (gop->size() % d == 0 && gop->size() <= max_slopes * d),
          "gop must be square, with one row per feature, or have at most max_slopes rows");
  require(all_finite(shift) && all_finite(scale) && all_finite(knots), "a view must be finite");
  require(all_within(directions, largest_direction), "directions must be finite and at most 1e50 in size");
  require(std::ranges::all_of(scale, [](double each) { return each > 0.0; }), "scale must be > 0");
}

void FeatureView::standardize(std::span<const double> row, std::span<double> standard) const {
  for (std::size_t k = 0; k < dimension && !knots.empty(); ++k) {
    standard[k] = rank_of(row[k], k);
  }
  const std::span<const double> values = knots.empty() ? row : standard;
  for (std::size_t k = 0; k < dimension; ++k) {  // a loop of its own, so that it is vectorized
    standard[k] = std::min(std::max((values[k] - shift[k]) / scale[k], -largest_standard), largest_standard);
  }
}

// Returns the rank of a value among the knots of a feature, from 0 to 1, by linear interpolation. The rank of a
// repeated knot is the middle of its ranks.
double FeatureView::rank_of(double value, std::size_t feature) const {
  const std::size_t count = knot_count();
  const auto knot = [&](std::size_t at) { return knots[at * dimension + feature]; };
  std::size_t low = 0;
  std::size_t high = count - 1;
  if (value <= knot(low)) {
    return 0.0;
  }
  if (value >= knot(high)) {
    return 1.0;
  }
  while (high - low > 1) {  // invariant: knot(low) < value <= knot(high)
    const std::size_t middle = (low + high) / 2;
    (knot(middle) < value ? low : high) = middle;
  }
  const auto intervals = static_cast<double>(count - 1);
  if (knot(high) == value) {
    std::size_t last = high;
    while (last + 1 < count && knot(last + 1) == value) {
      ++last;
    }
    return 0.5 * static_cast<double>(high + last) / intervals;
  }
  return (static_cast<double>(low) + (value - knot(low)) / (knot(high) - knot(low))) / intervals;
}

void FeatureView::find_gradient(std::span<const double> slope, std::span<const double> linear,
                                const GradientBuffers& buffers) const {
  const std::span<double> gradient = buffers.gradient;
  // Along a direction u of norm |u|, a fitted slope s adds s u. The rest of the linear slope is orthogonal to all
  // fitted directions.
  const std::span<double> along = buffers.fit.first(fit_dimension);
  std::ranges::copy(slope, along.begin());
  if (fit_dimension < dimension) {
    const std::span<double> components = buffers.fit.subspan(fit_dimension, fit_dimension);
    const std::span<double> norms = buffers.fit.subspan(2 * fit_dimension, fit_dimension);
    std::ranges::fill(components, 0.0);
    std::ranges::fill(norms, 0.0);
    for (std::size_t i = 0; i < dimension; ++i) {
      for (std::size_t j = 0; j < fit_dimension; ++j) {
        const double direction = directions[i * rank + j];
        components[j] += direction * linear[i];
        norms[j] += direction * direction;
      }
    }
    for (std::size_t j = 0; j < fit_dimension; ++j) {
      along[j] -= components[j] / norms[j];
    }
  }
  for (std::size_t i = 0; i < dimension; ++i) {
    gradient[i] = fit_dimension < dimension ? linear[i] : 0.0;
    for (std::size_t j = 0; j < fit_dimension; ++j) {
      gradient[i] += directions[i * rank + j] * along[j];
    }
  }
}

void FeatureView::make_room() {
  if (keeps_next_slope()) {
    reserve_more(gop, dimension);
    return;
  }
  std::vector<double>& entries = gop.write();
  if (entries.size() < dimension * dimension) {
    entries.reserve(entries.size() + dimension * dimension);  // the sum is computed behind the slopes
  }
}

void FeatureView::add_gradient(std::span<const double> gradient) {
  const bool keeps = keeps_next_slope();
  std::vector<double>& entries = gop.write();
  if (keeps) {
    entries.insert(entries.end(), gradient.begin(), gradient.end());
    return;
  }
  if (entries.size() < dimension * dimension) {
    sum_slopes(dimension, entries);
  }
  add_outer_product(gradient, entries);
}

void FeatureView::convert_gop(std::span<const double> ratio, std::span<double> converted) const {
  const std::size_t rows = gop->size() / dimension;
  for (std::size_t i = 0; i < rows; ++i) {
    const double own = rows == dimension ? ratio[i] : 1.0;  // rows are features or slopes
    for (std::size_t j = 0; j < dimension; ++j) {
      converted[i * dimension + j] = (*gop)[i * dimension + j] * ratio[j] * own;
    }
  }
}

}  // namespace ellipack
