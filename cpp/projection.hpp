// Products of rows and a matrix, summed in a fixed order, so that results do not depend on batches.
#pragma once

#include <cstddef>
#include <span>

namespace ellipack {

// Computes out = row @ directions. Each sum runs from the first entry of the row to the last. `directions` is
// row-major, with row.size() rows of out.size() entries.
void project_row(std::span<const double> row, std::span<const double> directions, std::span<double> out);

// Computes out = rows @ directions. Both are row-major; `directions` has `width` columns.
void project_rows(std::span<const double> rows, std::span<const double> directions, std::size_t width,
                  std::span<double> out);

}  // namespace ellipack
