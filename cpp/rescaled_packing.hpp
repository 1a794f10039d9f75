// Algorithm 1 on single rows, with features and labels of any scale.
#pragma once

#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "packing_core.hpp"
#include "projection.hpp"
#include "unit_box.hpp"

namespace ellipack {

class RescaledPacking {
 public:
  // `directions` whiten rows that are scaled by the box.
  RescaledPacking(std::shared_ptr<PackingCore> core, UnitBox box, std::vector<double> directions)
      : core_(std::move(core)), box_(std::move(box)), directions_(std::move(directions)) {
    const std::size_t d = box_.dimension();
    if (core_->dimension() != d || directions_.size() != d * d) {
      throw std::invalid_argument("core, box and directions must have the same dimension");
    }
  }

  std::size_t dimension() const { return box_.dimension(); }

  double predict(std::span<const double> row) const { return box_.label_from_units(core_->predict_one(whitened(row))); }

  // Runs a round. Returns false, without a change, if the row or the label is outside of the box.
  bool learn(std::span<const double> row, double label, bool keep_founding_label) {
    const bool inside = box_.contains(row, label);
    if (inside) {
      core_->learn_one(whitened(row), box_.label_to_units(label), keep_founding_label);
    }
    return inside;
  }

 private:
  std::vector<double> whitened(std::span<const double> row) const {
    std::vector<double> units(row.size());
    std::vector<double> coordinates(row.size());
    box_.row_to_units(row, units);
    project_row(units, directions_, coordinates);
    return coordinates;
  }

  std::shared_ptr<PackingCore> core_;
  UnitBox box_;
  std::vector<double> directions_;
};

}  // namespace ellipack
