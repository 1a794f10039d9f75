// A regression with few rows and many features, from factors of its inverse.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "aggregation.hpp"
#include "checks.hpp"

namespace ellipack {

// Returns the regression whose inverse is diag(variances) + link link^T - rows^T rows. `rows` has one entry per feature
// in each row.
//
// With many features most of the time goes to the first use of the memory of the inverse, so that it is written once.
inline LeastSquares low_rank_regression(std::span<const double> variances, std::span<const double> link,
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
    for (std::size_t start = 0; start < rows.size(); start += count) {
      const double* const row = rows.data() + start;
      for (std::size_t j = 0; j < count; ++j) {
        inverse_row[j] -= row[i] * row[j];
      }
    }
    inverse_row[i] += variances[i];
  }
  return {std::move(entries), std::move(coefficients)};
}

}  // namespace ellipack
