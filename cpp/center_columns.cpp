#include "center_columns.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ellipack {

namespace {

constexpr double smallest_value = 1e-300;  // of a column that is not 0
constexpr double smallest_length = 1e-9;   // of a column that is not constant, relative to its largest value

// Subtracts the mean of a column, and divides it by its length.
void standardize_column(std::span<double> column) {
  double largest = smallest_value;
  for (const double value : column) {
    largest = std::max(largest, std::abs(value));
  }
  double sum = 0.0;
  for (double& value : column) {
    value /= largest;  // so that squares are finite
    sum += value;
  }
  const double mean = sum / static_cast<double>(column.size());
  double squares = 0.0;
  for (double& value : column) {
    value -= mean;
    squares += value * value;
  }
  const double length = std::sqrt(squares);
  for (double& value : column) {
    value = length > smallest_length ? value / length : 0.0;
  }
}

// Returns ranks, of mean 0 and length 1.
std::vector<double> standardized_ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t k) { return values[k]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) {
      ++last;
    }
    for (std::size_t k = first; k <= last; ++k) {
      ranks[order[k]] = 0.5 * static_cast<double>(first + last);
    }
    first = last + 1;
  }
  standardize_column(ranks);
  return ranks;
}

}  // namespace

std::vector<double> standardized_columns(const CenterMemory& centers, std::size_t most) {
  const std::size_t count = std::min(centers.size(), most);
  const std::size_t d = centers.dimension();
  std::vector<double> columns((2 + d) * count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t center = count > 1 ? i * (centers.size() - 1) / (count - 1) : 0;
    columns[i] = centers.round_sums[center] / static_cast<double>(centers.label_counts[center]);
    columns[count + i] = centers.mean_label(center);
    const std::span<const double> row = centers.rows[center];
    for (std::size_t k = 0; k < d; ++k) {
      columns[(2 + k) * count + i] = row[k];
    }
  }
  for (std::size_t column = 0; column < 2 + d; ++column) {
    standardize_column(std::span(columns).subspan(column * count, count));
  }
  return columns;
}

double rank_correlation(std::span<const double> one, std::span<const double> other) {
  const std::vector<double> left = standardized_ranks(one);
  const std::vector<double> right = standardized_ranks(other);
  return std::inner_product(left.begin(), left.end(), right.begin(), 0.0);
}

}  // namespace ellipack
