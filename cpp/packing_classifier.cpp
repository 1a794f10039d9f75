#include "packing_classifier.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "checks.hpp"

namespace ellipack {

namespace {

// Returns the number of labels, after checks that mistakes alone can lead to these centers.
std::int64_t checked_mistakes(const PackingCenters& centers) {
  std::int64_t total = 0;
  for (const std::int64_t count : centers.label_counts) {
    require(count >= 1, "label_counts must be >= 1");
    require(count <= largest_count - total, "the sum of label_counts must be <= 2^52");
    total += count;
  }
  require(centers.size() == 0 || centers.creation_rounds.back() <= total,
          "creation_rounds must be at most the number of mistakes");
  return total;
}

}  // namespace

PackingClassifierCore::PackingClassifierCore(std::size_t dimension, std::vector<std::int64_t> rank_starts,
                                             std::size_t packings, bool ball_clocks)
    : PackingClassifierCore(std::vector(packings, PackingCenters(dimension)), std::move(rank_starts), ball_clocks) {}

PackingClassifierCore::PackingClassifierCore(std::vector<PackingCenters> packings,
                                             std::vector<std::int64_t> rank_starts, bool ball_clocks)
    : dimension_(rank_starts.size() + 1),
      rank_starts_(std::move(rank_starts)),
      ball_clocks_(ball_clocks),
      packings_(std::move(packings)) {
  require(std::ranges::is_sorted(rank_starts_), "rank_starts must be sorted");
  require(!packings_.empty(), "there must be at least one packing");
  for (const PackingCenters& centers : packings_) {
    require(centers.points.dimension() == dimension_,
            "rank_starts must have one entry less than the number of coordinates");
    mistakes_.push_back(checked_mistakes(centers));
  }
}

PackingClassifierCore::PackingClassifierCore(const PackingClassifierCore& other)
    : PackingClassifierCore(other, std::shared_lock(other.mutex_)) {}

PackingClassifierCore::PackingClassifierCore(const PackingClassifierCore& other,
                                             const std::shared_lock<FairSharedMutex>&)
    : dimension_(other.dimension_),
      rank_starts_(other.rank_starts_),
      ball_clocks_(other.ball_clocks_),
      packings_(other.packings_),
      mistakes_(other.mistakes_) {}

std::vector<double> PackingClassifierCore::learn(std::span<const double> coordinates,
                                                 std::span<const std::int64_t> labels) {
  std::vector<double> predictions;
  std::vector<Round> rounds(packings_.size());
  const std::unique_lock lock(mutex_);
  predictions.reserve(labels.size() * packings_.size());
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto point = coordinates.subspan(row * dimension_, dimension_);
    for (std::size_t packing = 0; packing < packings_.size(); ++packing) {
      rounds[packing] = prepare_round(packing, point, std::cmp_equal(labels[row], packing));
    }
    for (std::size_t packing = 0; packing < packings_.size(); ++packing) {  // nothing throws from here on
      complete_round(packing, point, rounds[packing]);
      predictions.push_back(rounds[packing].prediction);
    }
  }
  return predictions;
}

PackingClassifierCore::Round PackingClassifierCore::prepare_round(std::size_t packing, std::span<const double> point,
                                                                  bool is_class) {
  PackingCenters& centers = packings_[packing];
  const Neighbor nearest = centers.points.nearest(point);
  const double prediction = centers.mean(nearest.position);
  Round round{.prediction = prediction, .is_class = is_class, .is_mistake = (prediction > 0.5) != is_class};
  if (!round.is_mistake) {
    return round;
  }
  round.center = static_cast<std::size_t>(nearest.position);
  const std::int64_t mistake = mistakes_[packing] + 1;
  round.adds_center = centers.size() == 0 || is_beyond(nearest.squared_distance,
                                                       ball_clocks_ ? centers.label_counts[round.center] + 1 : mistake);
  if (round.adds_center) {
    centers.make_room(point);
  }
  return round;
}

void PackingClassifierCore::complete_round(std::size_t packing, std::span<const double> point, const Round& round) {
  if (!round.is_mistake) {
    return;
  }
  PackingCenters& centers = packings_[packing];
  const std::int64_t mistake = ++mistakes_[packing];
  const std::size_t active = round.adds_center ? centers.add(point, mistake) : round.center;
  centers.add_label(active, round.is_class ? 1.0 : 0.0);
}

bool PackingClassifierCore::is_beyond(double squared_distance, std::int64_t round) const {
  const auto rank = 1 + (std::ranges::upper_bound(rank_starts_, round) - rank_starts_.begin());
  const double radius = std::pow(static_cast<double>(round), -1.0 / (1.0 + static_cast<double>(rank)));
  return std::sqrt(squared_distance) > radius;
}

std::vector<double> PackingClassifierCore::predict(std::span<const double> coordinates) const {
  std::vector<double> predictions;
  const std::shared_lock lock(mutex_);
  predictions.reserve(coordinates.size() / dimension_ * packings_.size());
  for (std::size_t first = 0; first < coordinates.size(); first += dimension_) {
    for (const PackingCenters& centers : packings_) {
      predictions.push_back(centers.mean(centers.points.nearest(coordinates.subspan(first, dimension_)).position));
    }
  }
  return predictions;
}

std::vector<std::int64_t> PackingClassifierCore::mistakes() const {
  const std::shared_lock lock(mutex_);
  return mistakes_;
}

std::vector<PackingCenters> PackingClassifierCore::packings() const {
  const std::shared_lock lock(mutex_);
  return packings_;
}

}  // namespace ellipack
