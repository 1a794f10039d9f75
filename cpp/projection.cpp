#include "projection.hpp"

#include <cassert>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "simd.hpp"

namespace ellipack {

namespace {

// Consecutive rows, and the destination of their products.
struct Projection {
  const double* rows;
  std::size_t depth;
  const double* directions;  // row-major, `depth` rows of `width` entries
  std::size_t width;
  double* out;
};

// Number of columns in a sum.
template <typename Sum>
inline constexpr std::size_t columns_of = simd::lane_count<Sum>;
template <>
inline constexpr std::size_t columns_of<double> = 1;

// A vector that fits in a register; wider vectors would spill to memory. Lanes are independent, so results do not
// depend on the width.
using Columns = simd::Vec<double, __BIGGEST_ALIGNMENT__ >= sizeof(simd::Double4) ? 4 : 2>;

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

// Computes some columns of some rows. `Sum` is a vector of several columns, or a double for one column; sum `at`
// belongs to row at / sums_per_row. Each sum runs from the first entry of the row to the last. Parameter packs instead
// of loops keep the sums in registers.
template <typename Sum, std::size_t sums_per_row, std::size_t... at>
void project_block(const Projection& p, std::size_t first_column, std::index_sequence<at...>) {
  constexpr std::size_t step = columns_of<Sum>;
  const auto [rows, depth, directions, width, out] = p;
  Sum sums[] = {(static_cast<void>(at), Sum{})...};
  for (std::size_t k = 0; k < depth; ++k) {
    const double* entries = directions + k * width + first_column;
    ((sums[at] += rows[at / sums_per_row * depth + k] * load_entries<Sum>(entries + at % sums_per_row * step)), ...);
  }
  (store_entries(out + at / sums_per_row * width + first_column + at % sums_per_row * step, sums[at]), ...);
}

template <typename Sum, std::size_t row_count, std::size_t sums_per_row>
void project_block(const Projection& p, std::size_t first_column) {
  project_block<Sum, sums_per_row>(p, first_column, std::make_index_sequence<row_count * sums_per_row>());
}

// Computes all columns of some rows. `vectors` is the number of vectors of columns that are summed at once.
template <std::size_t row_count, std::size_t vectors>
void project_columns(const Projection& p) {
  constexpr std::size_t lanes = columns_of<Columns>;
  std::size_t column = 0;
  for (; column + vectors * lanes <= p.width; column += vectors * lanes) {
    project_block<Columns, row_count, vectors>(p, column);
  }
  for (; column + lanes <= p.width; column += lanes) {
    project_block<Columns, row_count, 1>(p, column);
  }
  if (column == p.width) {
    return;
  }
  if (p.width > lanes) {  // compute the last full vector again; the sums have the same bits
    project_block<Columns, row_count, 1>(p, p.width - lanes);
  } else if (p.width == 3) {
    project_block<double, row_count, 3>(p, 0);
  } else if (p.width == 2) {
    project_block<double, row_count, 2>(p, 0);
  } else {
    project_block<double, row_count, 1>(p, 0);
  }
}

}  // namespace

void project_row(std::span<const double> row, std::span<const double> directions, std::span<double> out) {
  assert(directions.size() == row.size() * out.size());
  project_columns<1, 4>({row.data(), row.size(), directions.data(), out.size(), out.data()});
}

void project_rows(std::span<const double> rows, std::span<const double> directions, std::size_t width,
                  std::span<double> out) {
  constexpr std::size_t block_rows = 4;
  const std::size_t depth = directions.size() / width;
  const std::size_t count = rows.size() / depth;
  assert(out.size() == count * width);
  std::size_t row = 0;
  for (; row + block_rows <= count; row += block_rows) {
    project_columns<block_rows, 2>(
        {rows.data() + row * depth, depth, directions.data(), width, out.data() + row * width});
  }
  for (; row < count; ++row) {
    project_row(rows.subspan(row * depth, depth), directions, out.subspan(row * width, width));
  }
}

}  // namespace ellipack
