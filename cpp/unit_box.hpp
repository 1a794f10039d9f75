// Ranges of the features and of the label, and the scaling to the domain of the paper: rows in the unit ball, labels in
// [0, 1].
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace ellipack {

// A range of numbers. An empty range has low > high.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  bool contains(double value) const { return low <= value && value <= high; }

  // Returns the position of a value in the range, scaled and clipped to [-1, 1]; 0 if the range has no width.
  // Differences of halves are used, so that wide ranges do not overflow.
  double scaled(double value) const {
    const double half_width = 0.5 * high - 0.5 * low;
    if (!(half_width > 0.0)) {
      return 0.0;
    }
    return std::clamp(2.0 * ((0.5 * value - 0.5 * low) / half_width) - 1.0, -1.0, 1.0);
  }
};

class UnitBox {
 public:
  UnitBox(std::vector<double> low, std::vector<double> high, Range label)
      : low_(std::move(low)),
        high_(std::move(high)),
        label_(label),
        root_(std::sqrt(static_cast<double>(low_.size()))) {
    if (low_.empty() || low_.size() != high_.size()) {
      throw std::invalid_argument("low and high must have one entry per feature");
    }
  }

  std::size_t dimension() const { return low_.size(); }
  std::span<const double> low() const { return low_; }
  std::span<const double> high() const { return high_; }
  Range label() const { return label_; }

  bool contains(std::span<const double> row, double label) const {
    bool inside = label_.contains(label);
    for (std::size_t k = 0; k < row.size(); ++k) {
      inside = inside && low_[k] <= row[k] && row[k] <= high_[k];
    }
    return inside;
  }

  // Scales a row into the unit ball. A row outside of the box is clipped to its edge.
  void row_to_units(std::span<const double> row, std::span<double> out) const {
    for (std::size_t k = 0; k < row.size(); ++k) {
      out[k] = Range{low_[k], high_[k]}.scaled(row[k]) / root_;
    }
  }

  double label_to_units(double label) const { return 0.5 + 0.5 * label_.scaled(label); }

  // Returns a label in its own units; 0 before the first label.
  double label_from_units(double label) const {
    if (label_.low > label_.high) {
      return 0.0;
    }
    return std::clamp((1.0 - label) * label_.low + label * label_.high, label_.low, label_.high);
  }

  // Returns the end of an interval around a prediction in units of the label, given both for scaled labels. It may lie
  // outside of the range.
  double end_from_units(double end, double prediction) const {
    if (std::isinf(end)) {
      return end;
    }
    const double half_width = 0.5 * label_.high - 0.5 * label_.low;
    return label_from_units(prediction) + 2.0 * ((end - prediction) * half_width);
  }

 private:
  std::vector<double> low_;
  std::vector<double> high_;
  Range label_;
  double root_;
};

}  // namespace ellipack
