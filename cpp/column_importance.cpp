#include "column_importance.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "checks.hpp"
#include "simd.hpp"

namespace ellipack {

namespace {

using simd::Double4;

constexpr std::int64_t equal_rounds = 500;       // in which groups of equal priority get equally many measurements
constexpr double early_rounds = 128.0;           // which count less than later ones
constexpr double even_part = 0.25;               // of the probability, equal in all rounds; the rest follows the size
constexpr double mean_change_part = 0.5;         // of the mean change, which is added to that of a round
constexpr double largest_ratio = 20.0;           // of a size to its mean
constexpr double size_keep = 1.0 - 1.0 / 256.0;  // factor of the weights of sizes in a round
constexpr double equal_fraction = 0.25;          // of the measurements, divided among the groups by priority alone
constexpr double recent_fraction = 0.25;         // divided by priority and the deviations in the recent rounds
constexpr double relative_fraction = 0.5;        // divided by priority and the relative deviations in all rounds
constexpr std::int64_t first_measurements = 6;   // that a new group gets soon
constexpr double least_effective = 2.0;          // effective number of measurements of a group that is not new
constexpr double fraction_of_new = 1.5;          // that all new groups get in addition, while there are any
constexpr double fraction_of_uncertain = 0.5;    // the same of those with few effective measurements
constexpr std::int64_t measurements_per_division = 8;  // after which they are divided again among the groups
constexpr double least_memory = 512.0;                 // rounds of the recent window
constexpr double memory_divisor = 4.0;                 // a recent window is a quarter of the rounds
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

// Returns the mean number of rounds from a measurement to the next. A measurement costs most of a round. There are more
// in the beginning, so that the first figures come soon.
double stride(std::int64_t round) {
  if (round < equal_rounds) {
    return round < 120 ? 2.0 : 4.0;
  }
  return 26.0;
}

// Returns the weight of a round in all sums. In the first rounds, the learner hardly knows the function, and
// predictions may depend on features that do not matter. So these rounds count in proportion to their number.
double weight_of(std::int64_t round) { return std::min(1.0, static_cast<double>(round + 1) / early_rounds); }

// Returns the number of rounds of the recent window.
double memory(std::int64_t round) { return std::max(least_memory, static_cast<double>(round) / memory_divisor); }

// Returns by how much each surrogate changes if features have their values in another row.
Double4 changes_of(const Surrogates& surrogates, std::span<const std::int64_t> features) {
  Double4 sums{};
  for (const std::int64_t feature : features) {
    const auto k = static_cast<std::size_t>(feature);
    sums += simd::load<Double4>(surrogates.slopes[k].data()) * surrogates.gaps[k];
  }
  return surrogates.curvatures.empty() ? sums : sums + Double4{0.0, 0.0, 0.0, surrogates.second_order_change(features)};
}

// Clips predictions; see PredictionRange.
Double4 clip(Double4 predictions, const PredictionRange& range) {
  const Double4 within =
      simd::min(simd::max(predictions, simd::splat<Double4>(range.low)), simd::splat<Double4>(range.high));
  return predictions == predictions ? within : simd::splat<Double4>(range.fallback);
}

// Returns by how much the squared error rises if the prediction moves.
double rise_of(double move, double prediction, double label) {
  const double rise = move * (move + 2.0 * (prediction - label));
  return std::abs(rise) <= largest_control ? rise : 0.0;
}

// Returns whether the values of a group were the same as those of an earlier row in all rounds.
bool has_never_differed(const FeatureGroup& group) {
  return group.total.differs.weight > 0.0 && group.total.differs.mean == 0.0;
}

}  // namespace

void ImportanceParts::check() const {
  require(dimension >= 1, "importance must have at least one feature");
  require(seen >= 0 && seen <= largest_count, "seen must be from 0 to 2^52");
  require(std::cmp_equal(sample.size(), std::min<std::int64_t>(seen, max_rows)),
          "rows must have as many rows as were seen, and at most 1,024");
  require(slope_model.empty() || slope_model.size() == dimension * (dimension + 1),
          "slope_model must be empty or have one row per feature, and the intercepts");
  require(sample.width() == 2 * dimension + past_dimension,
          "rows, gradients and past_rows must have one entry per feature");
  for (std::size_t k = 0; k < sample.size(); ++k) {
    require(all_within(sample[k], largest_value), "rows and gradients must be finite and at most 1e150 in size");
  }
  require(all_within(slope_model, largest_value) && all_within(last_row, largest_value),
          "slopes and last_row must be finite and at most 1e150 in size");
  require(last_row.size() == dimension && increases.size() == dimension && decreases.size() == dimension,
          "last_row, increases and decreases must have one entry per feature");
  for (const std::vector<std::int64_t>* counts : {&increases, &decreases}) {
    require(std::ranges::all_of(*counts, [](std::int64_t n) { return n >= 0 && n <= largest_count; }),
            "increases and decreases must be from 0 to 2^52");
  }
  require(is_valid(total_error) && is_valid(recent_error), "means of errors must be finite");
  require(recent_factor >= 0.0 && recent_factor <= 1.0, "the factor of recent weights must be from 0 to 1");
  for (const FeatureGroup& group : groups) {
    require(
        std::ranges::all_of(group.features, [this](std::int64_t k) { return k >= 0 && std::cmp_less(k, dimension); }),
        "the features of a group must be numbers of features");
    require(group.count >= 0 && group.count <= largest_count, "the count of a group must be from 0 to 2^52");
    require(group.priority >= 0.0 && group.priority <= 1.0, "the priority of a group must be from 0 to 1");
    require(group.fraction >= 0.0 && group.fraction <= 1.0, "the fraction of a group must be from 0 to 1");
    for (const DiscountedMean& mean : {group.change, group.size}) {
      require(is_valid(mean) && mean.mean >= 0.0, "change and size of a group must be finite and >= 0");
    }
    require(is_valid(group.total) && is_valid(group.recent),
            "sums of a group must be finite, and those of squares >= 0");
  }
}

ColumnImportance::ColumnImportance(ImportanceParts parts) : parts_((parts.check(), std::move(parts))) {
  needs_.resize(parts_.groups.size());
  fractions_.resize(parts_.groups.size());
  find_next_fractions();
}

std::size_t ColumnImportance::source_row(std::int64_t round) const {
  return random_bits(parts_.seed, round, 0) % parts_.sample.size();
}

// For a move m and an error e, the rise is m^2 + 2 m e. Where errors are large, all rises are. The prediction may move
// though the surrogates do not, so that a part of their mean change is added. Surrogates know nothing about the past,
// so that groups that use it have the same size in all rounds.
void ColumnImportance::find_expected_rise(const FeatureGroup& group, const Prediction& prediction,
                                          ExpectedRise& expected) const {
  const bool other_past = group.uses_past && parts_.past_dimension > 0;
  expected.differs = other_past || std::ranges::any_of(group.features, [&](std::int64_t feature) {
                       const auto k = static_cast<std::size_t>(feature);
                       return prediction.row[k] != prediction.source[k];
                     });
  if (!expected.differs) {
    expected = {};
    return;
  }
  const Double4 moves =
      clip(prediction.value + changes_of(prediction.surrogates, group.features), prediction.range) - prediction.value;
  const double error = prediction.value - prediction.label;
  const Double4 rises = moves * (moves + 2.0 * error);
  simd::store(expected.controls.data(), simd::abs(rises) <= largest_control ? rises : Double4{});
  const Double4 sizes = simd::abs(moves);
  expected.mean_change = 0.25 * ((sizes[0] + sizes[1]) + (sizes[2] + sizes[3]));
  const double move = expected.mean_change + mean_change_part * group.change.mean;
  expected.size = other_past ? 1.0 : std::min(largest_control, move * (move + 2.0 * std::abs(error)));
}

void ColumnImportance::find_expected_rises(const Prediction& prediction, std::span<ExpectedRise> expected_rises) const {
  for (std::size_t g = 0; g < expected_rises.size(); ++g) {
    find_expected_rise(parts_.groups[g], prediction, expected_rises[g]);
  }
}

std::optional<ColumnImportance::Choice> ColumnImportance::choose(std::int64_t round,
                                                                 std::span<const ExpectedRise> expected_rises) const {
  if (round < ImportanceParts::first_round) {
    return std::nullopt;
  }
  // A part of the probability is the same in all rounds with different values, the rest is in proportion to the size in
  // this round.
  const auto probability = [&](std::size_t g) {
    if (!expected_rises[g].differs) {
      return 0.0;
    }
    const FeatureGroup& group = parts_.groups[g];
    const double ratio =
        group.size.mean > 0.0 ? std::min(largest_ratio, expected_rises[g].size / group.size.mean) : 1.0;
    const double fraction = group.total.differs.mean > 0.0 ? group.total.differs.mean : 1.0;
    return fractions_[g] / fraction * (even_part + (1.0 - even_part) * ratio) / stride(round);
  };
  double sum = 0.0;
  for (std::size_t g = 0; g < expected_rises.size(); ++g) {
    sum += probability(g);
  }
  const double scale = sum > 1.0 ? 1.0 / sum : 1.0;  // no more than one measurement in a round
  double drawn = static_cast<double>(random_bits(parts_.seed, round, 2) >> 11U) * 0x1p-53;
  if (drawn >= scale * sum) {
    return std::nullopt;
  }
  for (std::size_t g = 0; g < expected_rises.size(); ++g) {
    const double own = scale * probability(g);
    if (drawn < own) {
      return Choice{.group = g, .probability = own};
    }
    drawn -= own;
  }
  return std::nullopt;
}

// Finds the fraction of the measurements that each group gets next. Until they are divided, groups with few get most.
// Afterwards, all new groups get a part of them. Groups whose values have never differed do not count.
void ColumnImportance::find_next_fractions() {
  const std::vector<FeatureGroup>& groups = parts_.groups;
  std::ranges::transform(groups, fractions_.begin(), &FeatureGroup::fraction);
  if (std::ranges::all_of(fractions_, [](double fraction) { return fraction == 0.0; })) {
    double sum = 0.0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      fractions_[g] = groups[g].priority / static_cast<double>(1 + groups[g].count);
      sum += has_never_differed(groups[g]) ? 0.0 : fractions_[g];
    }
    std::ranges::for_each(fractions_, [sum](double& fraction) { fraction /= sum > 0.0 ? sum : 1.0; });
    return;
  }
  const auto is_new = [](const FeatureGroup& group) {
    return !has_never_differed(group) &&
           (group.count < first_measurements || group.total.measured.effective_count() < least_effective);
  };
  const auto count = static_cast<double>(std::ranges::count_if(groups, is_new));
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (is_new(groups[g])) {
      const double part = groups[g].count < first_measurements ? fraction_of_new : fraction_of_uncertain;
      fractions_[g] = std::max(fractions_[g], part / count);
    }
  }
}

// Computes the fraction of the measurements that each group gets: a part is divided by priority alone, the rest also by
// the deviation of a single measurement (Neyman's allocation): in recent rounds, and in all relative to the rises, so
// that also small ones can be told apart.
void ColumnImportance::divide_measurements() {
  for (FeatureGroup& group : parts_.groups) {
    group.fraction = 0.0;
  }
  divide(equal_fraction, [](const FeatureGroup&) { return 1.0; });
  divide(relative_fraction,
         [](const FeatureGroup& group) { return group.total.relative_deviation_of_one(group.count); });
  divide(recent_fraction,
         [](const FeatureGroup& group) { return group.recent.deviation_of_one(group.total, group.count); });
}

// Divides a part of the measurements by priority and deviation.
template <typename Deviation>
void ColumnImportance::divide(double part, Deviation deviation) {
  for (std::size_t g = 0; g < needs_.size(); ++g) {
    const FeatureGroup& group = parts_.groups[g];
    needs_[g] = has_never_differed(group) ? 0.0 : group.priority * deviation(group);
  }
  const double sum = std::accumulate(needs_.begin(), needs_.end(), 0.0);
  const double equal = 1.0 / static_cast<double>(needs_.size());
  for (std::size_t g = 0; g < needs_.size(); ++g) {
    FeatureGroup& group = parts_.groups[g];
    group.fraction = std::min(1.0, group.fraction + part * (sum > 0.0 ? needs_[g] / sum : equal));
  }
}

bool ColumnImportance::is_divided_again() const {
  std::int64_t count = 0;
  for (const FeatureGroup& group : parts_.groups) {
    count += group.count;
  }
  return count % measurements_per_division == 0;
}

void ColumnImportance::make_room(std::int64_t round) {
  const std::uint64_t place = place_of_row(round);
  if (place < parts_.sample.size()) {
    parts_.sample.write(place);
  } else if (place < ImportanceParts::max_rows) {
    parts_.sample.make_room();
  }
}

void ColumnImportance::add(const Round& round) {
  const double weight = weight_of(round.number);
  const double keep = 1.0 - 1.0 / memory(round.number);
  parts_.recent_factor *= keep;
  if (round.choice) {
    add_measurement(*round.choice, round);
  }
  bool fractions_change = round.choice.has_value();
  for (std::size_t g = 0; g < parts_.groups.size() && !round.expected_rises.empty(); ++g) {
    FeatureGroup& group = parts_.groups[g];
    const ExpectedRise& expected = round.expected_rises[g];
    const bool had_never_differed = has_never_differed(group);
    group.total.differs.add(expected.differs ? 1.0 : 0.0, weight, 1.0);
    group.recent.differs.add(expected.differs ? 1.0 : 0.0, weight, keep);
    if (expected.differs) {
      group.total.controls.add(expected.controls, weight, 1.0);
      group.recent.controls.add(expected.controls, weight, keep);
      group.change.add(expected.mean_change, 1.0, size_keep);
      group.size.add(expected.size, 1.0, size_keep);
    } else {
      group.recent.controls.discount(keep);
    }
    fractions_change = fractions_change || has_never_differed(group) != had_never_differed;
  }
  const double error = square(round.prediction - round.label);
  parts_.total_error.add(error, weight, 1.0);
  parts_.recent_error.add(error, weight, keep);
  if (round.choice && round.number >= equal_rounds && is_divided_again()) {
    divide_measurements();
  }
  if (fractions_change) {
    find_next_fractions();
  }
  add_row(round);
}

void ColumnImportance::add_measurement(const Choice& choice, const Round& round) {
  for (FeatureGroup& group : parts_.groups) {
    group.recent.discount(parts_.recent_factor);
  }
  parts_.recent_factor = 1.0;
  Measured values;
  std::ranges::copy(round.expected_rises[choice.group].controls, values.begin());
  values.back() = rise_of(round.measured_prediction - round.prediction, round.prediction, round.label);
  FeatureGroup& group = parts_.groups[choice.group];
  const double weight = weight_of(round.number) / choice.probability;
  group.total.add(weight, values);
  group.recent.add(weight, values);
  ++group.count;
}

// Returns which row of the sample a row replaces (reservoir sampling): none, if it is beyond the largest sample.
std::uint64_t ColumnImportance::place_of_row(std::int64_t round) const {
  const std::size_t count = parts_.sample.size();
  return count < ImportanceParts::max_rows
             ? count
             : random_bits(parts_.seed, round, 1) % (static_cast<std::uint64_t>(parts_.seen) + 1);
}

// Adds the row to the sample, and counts increases and decreases.
void ColumnImportance::add_row(const Round& round) {
  for (std::size_t k = 0; k < parts_.dimension && parts_.seen > 0; ++k) {
    parts_.increases[k] += round.row[k] > parts_.last_row[k] ? 1 : 0;
    parts_.decreases[k] += round.row[k] < parts_.last_row[k] ? 1 : 0;
  }
  std::ranges::copy(round.row, parts_.last_row.begin());
  const std::uint64_t place = place_of_row(round.number);
  ++parts_.seen;
  if (place >= ImportanceParts::max_rows) {
    return;
  }
  auto entry = (place == parts_.sample.size() ? parts_.sample.add() : parts_.sample.write(place)).begin();
  entry = std::ranges::copy(round.row, entry).out;
  entry = std::ranges::transform(round.gradient, round.scale, entry, [](double slope, double scale) {
            const double own = slope / scale;
            return std::abs(own) <= largest_value ? own : 0.0;
          }).out;
  std::ranges::copy(round.past, entry);
}

}  // namespace ellipack
