#include "least_squares.hpp"

#include <utility>

namespace ellipack {

void LeastSquares::convert(std::span<const double> ratio, std::span<const double> shift) {
  const std::size_t count = size();
  std::vector<double> last(count);  // the last row of the new inverse
  multiply(shift, last);
  const double corner = dot(shift, last);
  for (std::size_t i = 0; i + 1 < count; ++i) {
    last[i] *= ratio[i];
  }
  last.back() = corner;

  std::vector<double>& entries = inverse.write();
  for (std::size_t i = 0; i + 1 < count; ++i) {
    double* const row = entries.data() + i * count;
    for (std::size_t j = 0; j + 1 < count; ++j) {
      row[j] *= ratio[i] * ratio[j];
    }
    row[count - 1] = last[i];
  }
  std::ranges::copy(last, entries.end() - static_cast<std::ptrdiff_t>(count));

  const double constant = dot(shift, coefficients);
  for (std::size_t i = 0; i + 1 < count; ++i) {
    coefficients[i] *= ratio[i];
  }
  coefficients.back() = constant;
}

// With many features most of the time goes to the first use of the memory of the inverse. Each of its rows is therefore
// written once, and not filled with zeros before.
//
// Four rows are subtracted at a time, which saves loads and stores.
LeastSquares LeastSquares::from_low_rank(std::span<const double> variances, std::span<const double> link,
                                         std::span<const double> rows, std::vector<double> coefficients) {
  const std::size_t count = coefficients.size();
  require(count >= 1 && variances.size() == count && link.size() == count && rows.size() % count == 0,
          "variances, link and rows must have an entry for each coefficient");
  std::vector<double> entries;
  entries.reserve(count * count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) {
      entries.push_back(link[i] * link[j]);
    }
    double* const inverse_row = entries.data() + i * count;
    const double* row = rows.data();
    const double* const end = row + rows.size();
    for (; end - row >= static_cast<std::ptrdiff_t>(4 * count); row += 4 * count) {
      for (std::size_t j = 0; j < count; ++j) {
        double entry = inverse_row[j];
        entry -= row[i] * row[j];
        entry -= row[count + i] * row[count + j];
        entry -= row[2 * count + i] * row[2 * count + j];
        entry -= row[3 * count + i] * row[3 * count + j];
        inverse_row[j] = entry;
      }
    }
    for (; row < end; row += count) {
      for (std::size_t j = 0; j < count; ++j) {
        inverse_row[j] -= row[i] * row[j];
      }
    }
    inverse_row[i] += variances[i];
  }
  return {std::move(entries), std::move(coefficients)};
}

}  // namespace ellipack
