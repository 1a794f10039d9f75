// Columns of some centers, by which correlations of features are found.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "center_memory.hpp"

namespace ellipack {

// Returns columns of at most `most` centers, evenly spaced, one after the other: mean rounds, mean labels, and each
// feature. They have mean 0 and length 1; constants are 0.
std::vector<double> standardized_columns(const CenterMemory& centers, std::size_t most);

// Returns the correlation of the ranks of two columns, 0 if one of them is constant. Equal values have their mean rank.
double rank_correlation(std::span<const double> one, std::span<const double> other);

}  // namespace ellipack
