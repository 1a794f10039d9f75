// Cholesky factorizations of several small positive definite matrices at once, one in each lane of a vector.
//
// The matrices are interleaved: entry (i, j) of all matrices is stored as `lanes` consecutive numbers. A row has the
// `size` columns of the matrix A, followed by right-hand sides. The factorization A = U^T U replaces a right-hand side
// b by the solution z of U^T z = b. Entries below the diagonal are not read.
#pragma once

#include <algorithm>
#include <array>
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
      finish_two_rows(row);
    }
    if (row < size_) {
      finish_last_row(row);
    }
  }

 private:
  // What the rows above leave of a tile of entries.
  template <int rows, int columns>
  using Tile = std::array<std::array<V, columns>, rows>;

  V get(std::size_t i, std::size_t j) const { return simd::load<V>(entries_ + (i * width_ + j) * lanes); }
  void set(std::size_t i, std::size_t j, V value) { simd::store(entries_ + (i * width_ + j) * lanes, value); }

  void finish_two_rows(std::size_t row) {
    const Tile<2, 2> diagonal = subtract_above<2, 2>(row, row);
    const V upper = inverse_root(diagonal[0][0]);
    const V right = diagonal[0][1] * upper;
    const V pivot = diagonal[1][1] - right * right;
    const V lower = inverse_root(pivot);
    set(row, row, diagonal[0][0] * upper);
    set(row, row + 1, right);
    set(row + 1, row + 1, pivot * lower);
    for_each_tile(row + 2, [&]<int columns>(std::size_t column) {
      const Tile<2, columns> tile = subtract_above<2, columns>(row, column);
      for (int c = 0; c < columns; ++c) {
        const V above = tile[0][c] * upper;
        set(row, column + c, above);
        set(row + 1, column + c, (tile[1][c] - right * above) * lower);
      }
    });
  }

  void finish_last_row(std::size_t row) {
    const V pivot = subtract_above<1, 1>(row, row)[0][0];
    const V inverse = inverse_root(pivot);
    set(row, row, pivot * inverse);
    for_each_tile(row + 1, [&]<int columns>(std::size_t column) {
      const Tile<1, columns> tile = subtract_above<1, columns>(row, column);
      for (int c = 0; c < columns; ++c) {
        set(row, column + c, tile[0][c] * inverse);
      }
    });
  }

  // Calls a function for each tile of up to four columns, from `column` to the last one.
  template <typename Function>
  void for_each_tile(std::size_t column, Function function) const {
    for (; column + 4 <= width_; column += 4) {
      function.template operator()<4>(column);
    }
    switch (width_ - column) {
      case 3:
        return function.template operator()<3>(column);
      case 2:
        return function.template operator()<2>(column);
      case 1:
        return function.template operator()<1>(column);
      default:
        return;
    }
  }

  // Subtracts the contribution of the rows above from a tile of entries. All sums stay in registers.
  template <int rows, int columns>
  Tile<rows, columns> subtract_above(std::size_t row, std::size_t column) const {
    V sums[rows][columns] = {};
    for (std::size_t k = 0; k < row; ++k) {
      for (int r = 0; r < rows; ++r) {
        const V left = get(k, row + r);
        for (int c = 0; c < columns; ++c) {
          sums[r][c] += left * get(k, column + c);
        }
      }
    }
    Tile<rows, columns> out;
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) {
        out[r][c] = get(row + r, column + c) - sums[r][c];
      }
    }
    return out;
  }

  static V inverse_root(V pivot) {
    return static_cast<T>(1) / simd::sqrt(simd::max(pivot, simd::splat<V>(static_cast<T>(min_pivot))));
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

// Instantiated in local_models.cpp and loo_scoring.cpp, so that bindings call the functions that the kernels use.
extern template void factor<2>(double* entries, std::size_t size, std::size_t width);
extern template void factor<4>(double* entries, std::size_t size, std::size_t width);
extern template void factor<8>(double* entries, std::size_t size, std::size_t width);
extern template void factor<8>(float* entries, std::size_t size, std::size_t width);
extern template void factor<16>(float* entries, std::size_t size, std::size_t width);

}  // namespace ellipack
