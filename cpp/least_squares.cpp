#include "least_squares.hpp"

#include <utility>

namespace ellipack {

LeastSquares LeastSquares::converted(std::span<const double> ratio, std::span<const double> shift) const {
  const std::size_t count = size();
  const double* const old = inverse->data();
  std::vector<double> entries(count * count);
  std::vector<double> new_coefficients(count);
  std::vector<double> last(count);
  multiply(shift, last);
  for (std::size_t i = 0; i + 1 < count; ++i) {
    for (std::size_t j = 0; j + 1 < count; ++j) {
      entries[i * count + j] = old[i * count + j] * (ratio[i] * ratio[j]);
    }
    entries[i * count + count - 1] = last[i] * ratio[i];
    entries[(count - 1) * count + i] = last[i] * ratio[i];
    new_coefficients[i] = coefficients[i] * ratio[i];
  }
  entries.back() = dot(shift, last);
  new_coefficients.back() = dot(shift, coefficients);
  return {std::move(entries), std::move(new_coefficients)};
}

// With many features most of the time goes to the first use of the memory of the inverse, so that it is written row by
// row, each once. Four rows are subtracted at a time, which saves loads and stores.
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
