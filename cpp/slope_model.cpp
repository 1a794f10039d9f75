#include "slope_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "simd.hpp"

namespace ellipack {

namespace {

using simd::Double8;
constexpr double largest_slope = 1e100;
constexpr std::size_t most_features = 256;  // beyond which there is no model, to save time
constexpr std::size_t least_rows = 64;      // below, slopes are too noisy

// Columns of equal length, padded with zeros to whole blocks of vectors.
class PaddedColumns {
 public:
  PaddedColumns(std::size_t count, std::size_t rows)
      : rows_(rows), padded_((rows + block - 1) / block * block), entries_(count * stride()) {}

  std::span<double> operator[](std::size_t column) { return {entries_.data() + column * stride(), rows_}; }

  // Subtracts the mean of a column from it, and returns the mean.
  double center(std::size_t column) {
    const std::span<double> own = (*this)[column];
    double sum = 0.0;
    for (const double entry : own) {
      sum += entry;
    }
    const double mean = sum / static_cast<double>(rows_);
    for (double& entry : own) {
      entry -= mean;
    }
    return mean;
  }

  // Returns the sum of the products of two columns.
  double product(std::size_t one, std::size_t other) const {
    const double* const left = entries_.data() + one * stride();
    const double* const right = entries_.data() + other * stride();
    std::array<Double8, vectors_per_block> sums{};  // several, so that an addition does not wait for the one before
    for (std::size_t row = 0; row < padded_; row += block) {
      for (std::size_t k = 0; k < vectors_per_block; ++k) {
        const std::size_t at = row + k * lanes;
        sums[k] += simd::load<Double8>(left + at) * simd::load<Double8>(right + at);
      }
    }
    const Double8 sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    double total = 0.0;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      total += sum[lane];
    }
    return total;
  }

 private:
  static constexpr std::size_t lanes = simd::lane_count<Double8>;
  static constexpr std::size_t vectors_per_block = 4;
  static constexpr std::size_t block = vectors_per_block * lanes;

  // Entries from a column to the next: no power of 2, because all columns would share few places of the cache.
  std::size_t stride() const { return padded_ + lanes; }

  std::size_t rows_;
  std::size_t padded_;  // rows of whole blocks
  simd::AlignedVector<double> entries_;
};

// Solves linear systems with a positive definite matrix. Row i has the entries of the matrix from the diagonal on, and
// then `d` right-hand sides, which the solutions replace.
void solve(std::vector<double>& systems, std::size_t d) {
  const std::size_t width = 2 * d;
  const auto row = [&](std::size_t i) { return systems.data() + i * width; };
  for (std::size_t i = 0; i < d; ++i) {  // Cholesky factorization
    double* const own = row(i);
    for (std::size_t k = 0; k < i; ++k) {
      const double* const above = row(k);
      const double factor = above[i];
      for (std::size_t j = i; j < width; ++j) {
        own[j] -= factor * above[j];
      }
    }
    const double root = std::sqrt(own[i]);
    for (std::size_t j = i; j < width; ++j) {
      own[j] /= root;
    }
  }
  for (std::size_t i = d; i-- > 0;) {
    double* const own = row(i);
    for (std::size_t k = i + 1; k < d; ++k) {
      const double* const below = row(k);
      for (std::size_t j = d; j < width; ++j) {
        own[j] -= own[k] * below[j];
      }
    }
    for (std::size_t j = d; j < width; ++j) {
      own[j] /= own[i];
    }
  }
}

}  // namespace

std::vector<double> fit_slope_model(const ImportanceParts& importance, const FeatureView& view) {
  const std::size_t d = importance.dimension;
  const std::size_t count = importance.sample.size();
  if (count < least_rows || d > most_features) {
    return {};
  }
  PaddedColumns columns(2 * d, count);  // standardized features, then slopes
  std::vector<double> standard(d);
  for (std::size_t row = 0; row < count; ++row) {
    view.standardize(importance.row(row), standard);
    const std::span<const double> gradient = importance.gradient(row);
    for (std::size_t k = 0; k < d; ++k) {
      columns[k][row] = standard[k];
      columns[d + k][row] = std::clamp(gradient[k] * view.scale[k], -largest_slope, largest_slope);
    }
  }
  std::vector<double> means(2 * d);
  for (std::size_t k = 0; k < 2 * d; ++k) {
    means[k] = columns.center(k);
  }
  std::vector<double> systems(d * 2 * d);
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = i; j < 2 * d; ++j) {
      systems[i * 2 * d + j] = columns.product(i, j);
    }
    // The penalty is that of a prior that weighs as much as the square root of the number of rows.
    systems[i * 2 * d + i] += std::sqrt(static_cast<double>(count));
  }
  solve(systems, d);
  const auto coefficient = [&](std::size_t i, std::size_t j) { return systems[i * 2 * d + d + j]; };
  std::vector<double> model((d + 1) * d);
  std::copy_n(means.begin() + static_cast<std::ptrdiff_t>(d), d, model.end() - static_cast<std::ptrdiff_t>(d));
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j < d; ++j) {
      const double symmetric = 0.5 * (coefficient(i, j) + coefficient(j, i));
      model[i * d + j] = symmetric;
      model[d * d + j] -= means[i] * symmetric;
    }
  }
  return model;
}

}  // namespace ellipack
