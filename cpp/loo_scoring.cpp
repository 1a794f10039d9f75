#include "loo_scoring.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "batched_kriging.hpp"
#include "checks.hpp"
#include "simd.hpp"

namespace ellipack {

template void factor<8>(float* entries, std::size_t size, std::size_t width);
template void factor<16>(float* entries, std::size_t size, std::size_t width);

namespace {

using simd::Floats;
constexpr int scores_at_once = simd::lane_count<Floats>;  // number of validation points that are predicted at once

// Parameters of the Matern correlation, between those of the experts.
constexpr float correlation_length = 3.0F;
constexpr float nugget = 0.05F;

// Returns the Matern correlation (1 + u) exp(-u) for u from 0 to 1.4, by the power series of exp(-u / 4).
Floats matern(Floats u) {
  constexpr int terms = 7;
  constexpr auto coefficients = [] {
    std::array<float, terms + 1> out{};
    double value = 1.0;
    for (int k = 0; k <= terms; ++k) {
      out[k] = static_cast<float>(value);
      value /= -4.0 * (k + 1);
    }
    return out;
  }();
  auto root = simd::splat<Floats>(coefficients[terms]);
  for (int k = terms - 1; k >= 0; --k) {
    root = root * u + coefficients[k];
  }
  return (1.0F + u) * (root * root) * (root * root);
}

// Runs before any allocation that depends on these sizes.
void check(std::span<const double> labels, std::span<const std::int64_t> validation, std::size_t neighbors) {
  require(neighbors >= 1 && neighbors < labels.size(), "neighbors must be >= 1 and less than the number of points");
  require(all_finite(labels), "labels must be finite");
  const auto count = static_cast<std::int64_t>(labels.size());
  require(std::ranges::all_of(validation, [count](std::int64_t at) { return at >= 0 && at < count; }),
          "validation must contain positions of points");
}

}  // namespace

LeaveOneOutScorer::LeaveOneOutScorer(std::vector<double> labels, std::vector<std::int64_t> validation,
                                     std::size_t neighbors)
    : labels_((check(labels, validation, neighbors), std::move(labels))),
      validation_(std::move(validation)),
      neighbors_(neighbors),
      found_(validation_.size() * (neighbors + 1)),
      squared_distances_(neighbors * scores_at_once),
      neighbor_labels_(neighbors * scores_at_once),
      systems_(neighbors * (neighbors + kriging_right_sides) * scores_at_once) {}

double LeaveOneOutScorer::score(std::span<const double> projected, std::span<const double> scales) {
  require(!scales.empty() && projected.size() == points() * scales.size(),
          "projected must have one row per point and one column per scale");
  rank_ = scales.size();
  coordinates_.resize(points() * rank_);
  for (std::size_t i = 0; i < points(); ++i) {
    for (std::size_t k = 0; k < rank_; ++k) {
      coordinates_[i * rank_ + k] = projected[i * rank_ + k] * scales[k];
    }
  }
  if (!all_finite(coordinates_)) {
    return std::numeric_limits<double>::infinity();
  }
  columns_.resize(rank_ * neighbors_ * scores_at_once);
  const KdTree tree(coordinates_, rank_);
  for (std::size_t row = 0; row < validation_.size(); ++row) {
    find_neighbors(row, tree);
  }
  has_searched_ = true;
  double total = 0.0;
  std::array<float, scores_at_once> errors{};
  for (std::size_t first = 0; first < validation_.size(); first += scores_at_once) {
    const std::size_t used = std::min<std::size_t>(scores_at_once, validation_.size() - first);
    for (std::size_t lane = 0; lane < scores_at_once; ++lane) {
      fill_lane(first + std::min(lane, used - 1), static_cast<int>(lane));
    }
    krige(errors.data());
    for (std::size_t lane = 0; lane < used; ++lane) {
      total += static_cast<double>(errors[lane]) * static_cast<double>(errors[lane]);
    }
  }
  return total;
}

// The neighbors under the previous candidate bound the search: the nearest points cannot be farther than the farthest
// of them.
void LeaveOneOutScorer::find_neighbors(std::size_t row, const KdTree& tree) {
  const double limit = has_searched_ ? farthest_previous_neighbor(row) : std::numeric_limits<double>::infinity();
  const std::span found(found_.data() + row * (neighbors_ + 1), neighbors_ + 1);
  tree.k_nearest(point(static_cast<std::size_t>(validation_[row])), limit, found);
}

// Returns the largest squared distance to the neighbors under the previous candidate.
double LeaveOneOutScorer::farthest_previous_neighbor(std::size_t row) const {
  const auto own = point(static_cast<std::size_t>(validation_[row]));
  double farthest = 0.0;
  for (std::size_t j = 0; j <= neighbors_; ++j) {
    const auto other = point(static_cast<std::size_t>(found_[row * (neighbors_ + 1) + j].position));
    double squared = 0.0;
    for (std::size_t k = 0; k < rank_; ++k) {
      const double gap = own[k] - other[k];
      squared += gap * gap;
    }
    farthest = std::max(farthest, squared);
  }
  return farthest;
}

// Writes the neighborhood of a validation point, without the point itself, to one lane.
void LeaveOneOutScorer::fill_lane(std::size_t row, int lane) {
  const Neighbor* found = found_.data() + row * (neighbors_ + 1);
  const std::int64_t own = validation_[row];
  const auto center = point(static_cast<std::size_t>(own));
  const double scale = 1.0 / std::max(std::sqrt(found[neighbors_].squared_distance), min_farthest);
  std::size_t at = 0;
  for (std::size_t j = 0; j <= neighbors_ && at < neighbors_; ++j) {
    if (found[j].position == own) {
      continue;
    }
    const auto other = static_cast<std::size_t>(found[j].position);
    const double distance = std::sqrt(found[j].squared_distance) * scale;
    const auto coordinates = point(other);
    squared_distances_[at * scores_at_once + lane] = static_cast<float>(distance * distance);
    neighbor_labels_[at * scores_at_once + lane] =
        static_cast<float>(labels_[other] - labels_[static_cast<std::size_t>(own)]);
    for (std::size_t k = 0; k < rank_; ++k) {
      columns_[(k * neighbors_ + at) * scores_at_once + lane] =
          static_cast<float>((coordinates[k] - center[k]) * scale);
    }
    ++at;
  }
}

// Computes the kriging predictions of several neighborhoods, scaled so that the farthest neighbor is at distance 1.
// They are errors, because labels are relative to the validation point.
void LeaveOneOutScorer::krige(float* predictions) {
  const std::size_t n = neighbors_;
  const std::size_t width = n + kriging_right_sides;
  const auto entry = [&](std::size_t i, std::size_t j) { return systems_.data() + (i * width + j) * scores_at_once; };
  constexpr float unit = std::numbers::sqrt3_v<float> / correlation_length;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      Floats squared{};
      for (std::size_t k = 0; k < rank_; ++k) {
        const float* column = columns_.data() + k * n * scores_at_once;
        const auto gap =
            simd::load<Floats>(column + j * scores_at_once) - simd::load<Floats>(column + i * scores_at_once);
        squared += gap * gap;
      }
      simd::store(entry(i, j), squared);
    }
    simd::store(entry(i, n), simd::load<Floats>(squared_distances_.data() + i * scores_at_once));
  }
  // Compute all distances before the correlations, so that the processor can overlap the operations.
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j <= n; ++j) {
      simd::store(entry(i, j), matern(simd::sqrt(simd::load<Floats>(entry(i, j))) * unit));
    }
    simd::store(entry(i, i), simd::splat<Floats>(1.0F + nugget));
    simd::store(entry(i, n + 1), simd::load<Floats>(neighbor_labels_.data() + i * scores_at_once));
    simd::store(entry(i, n + 2), simd::splat<Floats>(1.0F));
  }
  factor<scores_at_once>(systems_.data(), n, width);
  simd::store(predictions, predict_at_queries<Floats>(systems_.data(), n));
}

}  // namespace ellipack
