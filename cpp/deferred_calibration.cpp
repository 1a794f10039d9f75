#include "deferred_calibration.hpp"

#include <algorithm>

#include "checks.hpp"

namespace ellipack {

DeferredCalibration::DeferredCalibration(const ConformalIntervals& calibrated, std::span<const double> errors)
    : calibrated_(calibrated), count_(errors.size()), next_(errors.size() % most_errors) {
  calibrated.check();
  require(errors.size() <= most_errors, "there must be at most 2,048 errors");
  require(all_finite(errors), "errors must be finite");
  std::ranges::copy(errors, errors_.begin());
}

bool DeferredCalibration::operator==(const DeferredCalibration& other) const {
  return calibrated_ == other.calibrated_ && errors() == other.errors();
}

std::vector<double> DeferredCalibration::errors() const {
  std::vector<double> all;
  all.reserve(count_);
  for (const std::span<const double> part : parts()) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

ConformalIntervals DeferredCalibration::intervals() const {
  static constexpr std::array<double, most_errors> predictions{};
  ConformalIntervals made = calibrated_;
  for (const std::span<const double> part : parts()) {
    made.run_rounds(std::span(predictions).first(part.size()), part, [](std::size_t, auto) {});
  }
  return made;
}

void DeferredCalibration::defer(std::span<const double> predictions, std::span<const double> labels) {
  const std::size_t rows = labels.size();
  for (std::size_t row = rows - std::min(rows, most_errors); row < rows; ++row) {
    errors_[next_] = labels[row] - predictions[row];
    next_ = (next_ + 1) % most_errors;
  }
  count_ = std::min(count_ + rows, most_errors);
}

DeferredCalibration DeferredCalibration::in_units(double slope) const {
  ConformalIntervals converted = calibrated_;
  converted.mean_error *= slope;
  std::vector<double> scaled = errors();
  for (double& error : scaled) {
    error *= slope;
  }
  return {converted, scaled};
}

std::array<std::span<const double>, 2> DeferredCalibration::parts() const {
  const std::span<const double> all = errors_;
  const std::size_t oldest = (next_ + most_errors - count_) % most_errors;
  const std::size_t up_to_end = std::min(count_, most_errors - oldest);
  return {all.subspan(oldest, up_to_end), all.first(count_ - up_to_end)};
}

}  // namespace ellipack
