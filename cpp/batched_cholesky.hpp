// Cholesky factorizations of several small positive definite matrices at once, one in each lane of a vector.
//
// The matrices are interleaved: entry (i, j) of all matrices is stored as `lanes` consecutive numbers. A row has the
// `size` columns of the matrix A, followed by right-hand sides. The factorization A = U^T U replaces a right-hand side
// b by the solution z of U^T z = b. Entries below the diagonal are not read.
#pragma once

#include <algorithm>
#include <cstddef>

#include "simd.hpp"

namespace ellipack {

// Smaller pivots are replaced by this value, so that numerically singular matrices have a factor, too.
inline constexpr double min_pivot = 1e-12;

// Factors the matrices in those lanes that fit in one register, out of `lanes` interleaved matrices.
template <typename V, int lanes>
class LaneFactorization {
 public:
  using T = simd::Lane<V>;

  LaneFactorization(T* entries, std::size_t size, std::size_t width) : entries_(entries), size_(size), width_(width) {}

  // Processes two rows at a time, so that each loaded value is used twice.
  void run() {
    std::size_t row = 0;
    for (; row + 2 <= size_; row += 2) {
      subtract_above_from_rows<2>(row);
      divide_by_pivot(row);
      const V left = get(row, row + 1);
      for (std::size_t j = row + 1; j < width_; ++j) {
        set(row + 1, j, get(row + 1, j) - left * get(row, j));
      }
      divide_by_pivot(row + 1);
    }
    if (row < size_) {
      subtract_above_from_rows<1>(row);
      divide_by_pivot(row);
    }
  }

 private:
  V get(std::size_t i, std::size_t j) const { return simd::load<V>(entries_ + (i * width_ + j) * lanes); }
  void set(std::size_t i, std::size_t j, V value) { simd::store(entries_ + (i * width_ + j) * lanes, value); }

  template <int rows>
  void subtract_above_from_rows(std::size_t row) {
    constexpr int columns = 4;
    std::size_t column = row;
    for (; column + columns <= width_; column += columns) {
      subtract_above<rows, columns>(row, column);
    }
    for (; column < width_; ++column) {
      subtract_above<rows, 1>(row, column);
    }
  }

  // Subtracts the contribution of the rows above from a tile of entries. All sums stay in registers.
  template <int rows, int columns>
  void subtract_above(std::size_t row, std::size_t column) {
    V sums[rows][columns] = {};
    for (std::size_t k = 0; k < row; ++k) {
      for (int r = 0; r < rows; ++r) {
        const V left = get(k, row + r);
        for (int c = 0; c < columns; ++c) {
          sums[r][c] += left * get(k, column + c);
        }
      }
    }
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) {
        set(row + r, column + c, get(row + r, column + c) - sums[r][c]);
      }
    }
  }

  void divide_by_pivot(std::size_t row) {
    const V pivot = simd::max(get(row, row), simd::splat<V>(static_cast<T>(min_pivot)));
    const V inverse = static_cast<T>(1) / simd::sqrt(pivot);
    for (std::size_t j = row; j < width_; ++j) {
      set(row, j, get(row, j) * inverse);
    }
  }

  T* entries_;
  std::size_t size_;
  std::size_t width_;
};

// Factors `lanes` interleaved matrices of `size` rows in place, with `width - size` right-hand sides.
template <int lanes, typename T>
void factor(T* entries, std::size_t size, std::size_t width) {
  constexpr int vector_lanes = std::min<int>(lanes, simd::register_bytes / sizeof(T));
  for (int first = 0; first < lanes; first += vector_lanes) {
    LaneFactorization<simd::Vec<T, vector_lanes>, lanes>(entries + first, size, width).run();
  }
}

}  // namespace ellipack
