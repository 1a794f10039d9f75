#include "column_importance.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "checks.hpp"

namespace ellipack {

namespace {

constexpr std::int64_t first_measurements = 8;  // of each group in turn, before uncertainty decides
constexpr double equal_fraction = 0.25;         // of the measurements, divided equally among the groups
constexpr double least_memory = 512.0;          // rounds of the recent window
constexpr double memory_divisor = 4.0;          // a recent window is a quarter of the rounds
constexpr double largest_control = 1e130;       // its squares do not overflow
constexpr double largest_sum = 1e300;
constexpr double largest_value = 1e150;

// Returns 64 random bits for a round (SplitMix64). Equal arguments give equal bits, in any order of calls.
std::uint64_t random_bits(std::int64_t seed, std::int64_t round, std::uint64_t stream) {
  std::uint64_t z = static_cast<std::uint64_t>(seed) * 0xd1342543de82ef95U + stream;
  for (const std::uint64_t step : {std::uint64_t{0}, static_cast<std::uint64_t>(round)}) {
    z += (step + 1) * 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    z ^= z >> 31U;
  }
  return z;
}

bool is_valid(const FadingMean& mean) {
  return mean.weight >= 0.0 && all_within(std::array{mean.weight, mean.mean}, largest_sum);
}

bool is_valid(const GroupSums& sums) {
  const RiseMoments& m = sums.moments;
  return is_valid(sums.controls) && m.weight >= 0.0 && m.squared_weight >= 0.0 && m.rise_squares >= 0.0 &&
         m.control_squares >= 0.0 &&
         all_within(
             std::array{m.weight, m.squared_weight, m.rise, m.control, m.rise_squares, m.products, m.control_squares},
             largest_sum);
}

// Returns the number of rounds from a measurement to the next. A measurement costs most of a round; all together are
// meant to take 5 % of the time. In the beginning the ends of phases, which are frequent, make rounds cost more.
std::int64_t stride(std::int64_t round) {
  if (round < 500) {
    return 5;
  }
  return round < 1500 ? 10 : 20;
}

double squared(double value) { return value * value; }

// Returns the number of rounds of the recent window.
double memory(std::int64_t round) { return std::max(least_memory, static_cast<double>(round) / memory_divisor); }

double uncertainty(const FeatureGroup& group) {
  return group.priority * std::sqrt(group.total.moments.residual_variance());
}

}  // namespace

void RiseMoments::add(double new_weight, double new_rise, double new_control) {
  weight += new_weight;
  squared_weight += new_weight * new_weight;
  const double step = new_weight / weight;
  const double rise_gap = new_rise - rise;
  const double control_gap = new_control - control;
  rise += step * rise_gap;
  control += step * control_gap;
  rise_squares += new_weight * rise_gap * (new_rise - rise);
  products += new_weight * rise_gap * (new_control - control);
  control_squares += new_weight * control_gap * (new_control - control);
}

void RiseMoments::fade(double factor) {
  weight *= factor;
  squared_weight *= factor * factor;
  rise_squares *= factor;
  products *= factor;
  control_squares *= factor;
}

double RiseMoments::residual_variance() const {
  if (weight == 0.0) {
    return 0.0;
  }
  const double explained = control_squares > 0.0 ? products * (products / control_squares) : 0.0;
  return std::max(0.0, rise_squares - explained) / weight;
}

void FadingMean::add(double value, double keep) {
  weight = weight * keep + 1.0;
  mean += (value - mean) / weight;
}

void ImportanceParts::check() const {
  require(dimension >= 1, "importance must have at least one feature");
  require(seen >= 0 && seen <= largest_count, "seen must be from 0 to 2^52");
  require(rows.size() % dimension == 0 && std::cmp_equal(row_count(), std::min<std::int64_t>(seen, max_rows)),
          "rows must have as many rows as were seen, and at most 256");
  require(past_rows.size() == row_count() * past_dimension, "past_rows must have one row per row");
  require(
      all_within(rows, largest_value) && all_within(past_rows, largest_value) && all_within(last_row, largest_value),
      "rows must be finite and at most 1e150 in size");
  require(last_row.size() == dimension && increases.size() == dimension && decreases.size() == dimension,
          "last_row, increases and decreases must have one entry per feature");
  for (const std::vector<std::int64_t>* counts : {&increases, &decreases}) {
    require(std::ranges::all_of(*counts, [](std::int64_t n) { return n >= 0 && n <= largest_count; }),
            "increases and decreases must be from 0 to 2^52");
  }
  require(is_valid(total_error) && is_valid(recent_error), "means of errors must be finite");
  for (const FeatureGroup& group : groups) {
    require(
        std::ranges::all_of(group.features, [this](std::int64_t k) { return k >= 0 && std::cmp_less(k, dimension); }),
        "the features of a group must be numbers of features");
    require(group.count >= 0 && group.count <= largest_count, "the count of a group must be from 0 to 2^52");
    require(group.priority >= 0.0 && group.priority <= 1.0, "the priority of a group must be from 0 to 1");
    require(all_within(std::array{group.credit}, largest_value), "the credit of a group must be finite");
    require(is_valid(group.total) && is_valid(group.recent),
            "sums of a group must be finite, and those of squares >= 0");
  }
}

ColumnImportance::ColumnImportance(ImportanceParts parts) : parts_((parts.check(), std::move(parts))) {
  parts_.rows.reserve(ImportanceParts::max_rows * parts_.dimension);
  parts_.past_rows.reserve(ImportanceParts::max_rows * parts_.past_dimension);
}

std::optional<std::size_t> ColumnImportance::source_row(std::int64_t round) const {
  if (parts_.rows.empty()) {
    return std::nullopt;
  }
  return random_bits(parts_.seed, round, 0) % parts_.row_count();
}

std::optional<std::size_t> ColumnImportance::group_to_measure(std::int64_t round) const {
  if (round < ImportanceParts::first_round || round % stride(round) != 0 || parts_.groups.empty() ||
      parts_.rows.empty()) {
    return std::nullopt;
  }
  const auto rarest = rarest_group();
  if (rarest->count < first_measurements) {
    return rarest - parts_.groups.begin();
  }
  const auto due = std::ranges::max_element(parts_.groups, {}, &FeatureGroup::credit);
  return due - parts_.groups.begin();
}

std::vector<FeatureGroup>::const_iterator ColumnImportance::rarest_group() const {
  return std::ranges::min_element(parts_.groups, {}, &FeatureGroup::count);
}

// Returns the fraction of the measurements that a group gets: a part is divided equally, the rest by the deviation of
// the rises (Neyman's allocation). `sum` is the sum of all deviations.
double ColumnImportance::fraction(const FeatureGroup& group, double sum) const {
  const double equal = 1.0 / static_cast<double>(parts_.groups.size());
  return equal_fraction * equal + (1.0 - equal_fraction) * (sum > 0.0 ? uncertainty(group) / sum : equal);
}

void ColumnImportance::add(const Round& round) {
  const double keep = 1.0 - 1.0 / memory(round.number);
  const double error = squared(round.prediction - round.label);
  parts_.total_error.add(error, 1.0);
  parts_.recent_error.add(error, keep);
  for (std::size_t g = 0; !round.changes.empty() && g < parts_.groups.size(); ++g) {
    FeatureGroup& group = parts_.groups[g];
    double change = 0.0;
    for (const std::int64_t k : group.features) {
      change += round.changes[static_cast<std::size_t>(k)];
    }
    const double control = squared(change) <= largest_control ? squared(change) : 0.0;
    if (round.measured == g) {
      add_measurement(group, round, control);
    }
    group.total.controls.add(control, 1.0);
    group.recent.controls.add(control, keep);
  }
  add_row(round);
}

void ColumnImportance::add_measurement(FeatureGroup& measured, const Round& round, double control) {
  const double keep = 1.0 - static_cast<double>(stride(round.number)) / memory(round.number);
  const double sum =
      std::accumulate(parts_.groups.begin(), parts_.groups.end(), 0.0,
                      [](double so_far, const FeatureGroup& group) { return so_far + uncertainty(group); });
  const bool in_turn = rarest_group()->count < first_measurements;
  const double weight = in_turn ? static_cast<double>(parts_.groups.size()) : 1.0 / fraction(measured, sum);
  for (FeatureGroup& group : parts_.groups) {
    group.recent.moments.fade(keep);
    group.credit += in_turn ? 0.0 : fraction(group, sum);
  }
  measured.credit -= in_turn ? 0.0 : 1.0;
  ++measured.count;
  const double rise = squared(round.measured_prediction - round.label) - squared(round.prediction - round.label);
  measured.total.moments.add(weight, rise, control);
  measured.recent.moments.add(weight, rise, control);
}

// Adds the row to the sample (reservoir sampling), and counts increases and decreases.
void ColumnImportance::add_row(const Round& round) {
  for (std::size_t k = 0; k < parts_.dimension && parts_.seen > 0; ++k) {
    parts_.increases[k] += round.row[k] > parts_.last_row[k] ? 1 : 0;
    parts_.decreases[k] += round.row[k] < parts_.last_row[k] ? 1 : 0;
  }
  std::ranges::copy(round.row, parts_.last_row.begin());
  ++parts_.seen;
  if (parts_.row_count() < ImportanceParts::max_rows) {
    parts_.rows.insert(parts_.rows.end(), round.row.begin(), round.row.end());
    parts_.past_rows.insert(parts_.past_rows.end(), round.past.begin(), round.past.end());
    return;
  }
  const std::uint64_t place = random_bits(parts_.seed, round.number, 1) % static_cast<std::uint64_t>(parts_.seen);
  if (place < ImportanceParts::max_rows) {
    std::ranges::copy(round.row, parts_.rows.begin() + static_cast<std::ptrdiff_t>(place * parts_.dimension));
    std::ranges::copy(round.past,
                      parts_.past_rows.begin() + static_cast<std::ptrdiff_t>(place * parts_.past_dimension));
  }
}

}  // namespace ellipack
