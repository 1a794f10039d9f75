#include "projection.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "simd.hpp"

namespace ellipack {

namespace {

// Some entries of consecutive rows, the directions that belong to these entries, and the destination of the products.
struct Projection {
  const double* rows;
  std::size_t depth;         // distance from a row to the next
  std::size_t entries;       // of each row
  const double* directions;  // row-major, `entries` rows of `width` entries
  std::size_t width;
  double* out;
};

// Number of columns in a sum.
template <typename Sum>
inline constexpr std::size_t columns_of = simd::lane_count<Sum>;
template <>
inline constexpr std::size_t columns_of<double> = 1;

// Vectors of columns. Each fits in a register; wider ones would spill to memory. Lanes are independent, so results do
// not depend on the width. The wide ones are used first, if registers have 64 bytes.
using Columns = simd::Vec<double, simd::register_bytes >= 32 ? 4 : 2>;
using WideColumns = simd::Vec<double, simd::register_bytes / 8>;

// Loads a vector or a number.
template <typename Sum>
Sum load_entries(const double* from) {
  Sum entries;
  std::memcpy(&entries, from, sizeof(Sum));
  return entries;
}

template <typename Sum>
void store_entries(double* to, Sum entries) {
  std::memcpy(to, &entries, sizeof(Sum));
}

// Where sums start: with 0, or with the sums of the entries before, which are in the destination.
struct FromZero {
  template <typename Sum>
  static Sum start(const double* /*out*/) {
    return Sum{};
  }
};
struct FromSums {
  template <typename Sum>
  static Sum start(const double* out) {
    return load_entries<Sum>(out);
  }
};

// Computes some columns of some rows. `Sum` is a vector of several columns, or a double for one column; sum `at`
// belongs to row at / sums_per_row. Each sum runs from the first entry of the row to the last. Parameter packs instead
// of loops keep the sums in registers.
template <typename Start, typename Sum, std::size_t sums_per_row, std::size_t... at>
void project_block(const Projection& p, std::size_t first_column, std::index_sequence<at...>) {
  constexpr std::size_t step = columns_of<Sum>;
  const auto [rows, depth, entry_count, directions, width, out] = p;
  double* const places[] = {(out + at / sums_per_row * width + first_column + at % sums_per_row * step)...};
  Sum sums[] = {Start::template start<Sum>(places[at])...};
  for (std::size_t k = 0; k < entry_count; ++k) {
    const double* entries = directions + k * width + first_column;
    ((sums[at] += rows[at / sums_per_row * depth + k] * load_entries<Sum>(entries + at % sums_per_row * step)), ...);
  }
  (store_entries(places[at], sums[at]), ...);
}

template <typename Start, typename Sum, std::size_t row_count, std::size_t sums_per_row>
void project_block(const Projection& p, std::size_t first_column) {
  project_block<Start, Sum, sums_per_row>(p, first_column, std::make_index_sequence<row_count * sums_per_row>());
}

// Computes columns from `column` on while they fill vectors, and returns the next one. `vectors` is the number of
// vectors that are summed at once.
template <typename Start, typename Sum, std::size_t row_count, std::size_t vectors>
std::size_t project_vectors(const Projection& p, std::size_t column) {
  constexpr std::size_t lanes = columns_of<Sum>;
  for (; column + vectors * lanes <= p.width; column += vectors * lanes) {
    project_block<Start, Sum, row_count, vectors>(p, column);
  }
  for (; column + lanes <= p.width; column += lanes) {
    project_block<Start, Sum, row_count, 1>(p, column);
  }
  return column;
}

// Computes all columns of some rows. `vectors` and `wide_vectors` are the numbers of vectors that are summed at once.
template <typename Start, std::size_t row_count, std::size_t vectors, std::size_t wide_vectors>
void project_columns(const Projection& p) {
  constexpr std::size_t lanes = columns_of<Columns>;
  std::size_t column = 0;
  if constexpr (columns_of<WideColumns> > lanes) {
    column = project_vectors<Start, WideColumns, row_count, wide_vectors>(p, column);
  }
  column = project_vectors<Start, Columns, row_count, vectors>(p, column);
  if (column == p.width) {
    return;
  }
  const std::size_t left = p.width - column;
  if (column > 0 && std::is_same_v<Start, FromZero>) {
    // Compute the last full vector again; the sums have the same bits.
    project_block<Start, Columns, row_count, 1>(p, p.width - lanes);
  } else if (left == 3) {
    project_block<Start, double, row_count, 3>(p, column);
  } else if (left == 2) {
    project_block<Start, double, row_count, 2>(p, column);
  } else {
    project_block<Start, double, row_count, 1>(p, column);
  }
}

// Computes the products of rows. The argument has the first of them.
template <typename Start>
void project_all(Projection p, std::size_t count) {
  constexpr std::size_t block_rows = 4;
  std::size_t row = 0;
  for (; row + block_rows <= count; row += block_rows) {
    project_columns<Start, block_rows, 2, 3>(p);
    p.rows += block_rows * p.depth;
    p.out += block_rows * p.width;
  }
  for (; row < count; ++row) {
    project_columns<Start, 1, 4, 3>(p);
    p.rows += p.depth;
    p.out += p.width;
  }
}

}  // namespace

void project_row(std::span<const double> row, std::span<const double> directions, std::span<double> out) {
  assert(directions.size() == row.size() * out.size());
  project_columns<FromZero, 1, 4, 3>({row.data(), row.size(), row.size(), directions.data(), out.size(), out.data()});
}

// Directions of many features do not fit in the cache. So some entries of all rows are added, then the next ones.
void project_rows(std::span<const double> rows, std::span<const double> directions, std::size_t width,
                  std::span<double> out) {
  if (directions.empty()) {
    std::ranges::fill(out, 0.0);
    return;
  }
  constexpr std::size_t cached = 2048;  // entries of directions: 16 KB
  const std::size_t depth = directions.size() / width;
  const std::size_t count = rows.size() / depth;
  assert(out.size() == count * width);
  const std::size_t step = std::max<std::size_t>(1, cached / width);
  project_all<FromZero>({rows.data(), depth, std::min(depth, step), directions.data(), width, out.data()}, count);
  for (std::size_t first = step; first < depth; first += step) {
    project_all<FromSums>({rows.data() + first, depth, std::min(depth - first, step), directions.data() + first * width,
                           width, out.data()},
                          count);
  }
}

}  // namespace ellipack
