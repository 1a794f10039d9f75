#include "center_memory.hpp"

#include <algorithm>

#include "checks.hpp"
#include "projection.hpp"
#include "reserve_more.hpp"

namespace ellipack {

void CenterMemory::check() const {
  require(dimension() >= 1, "centers must have at least one feature");
  require(rows.size() == size() && label_counts.size() == size() && round_sums.size() == size() &&
              error_sums.size() == size(),
          "rows, label_counts, round_sums and error_sums must have one entry per center");
  for (std::size_t i = 0; i < size(); ++i) {
    require(all_within(rows[i], largest_row), "the rows of centers must be finite and at most 1e150 in size");
  }
  require(all_finite(label_sums) && all_finite(round_sums), "label_sums and round_sums must be finite");
  require(all_finite(error_sums) && std::ranges::all_of(error_sums, [](double sum) { return sum >= 0.0; }),
          "error_sums must be finite and >= 0");
  require(all_counts(label_counts), "label_counts must be from 1 to 2^52");
}

void CenterMemory::make_room_to_add() {
  rows.make_room();
  reserve_more(label_sums, 1);
  reserve_more(label_counts, 1);
  reserve_more(round_sums, 1);
  reserve_more(error_sums, 1);
}

void CenterMemory::add(const Entry& entry) {
  rows.add(entry.row);
  label_sums.push_back(entry.label);
  label_counts.push_back(1);
  round_sums.push_back(static_cast<double>(entry.round));
  error_sums.push_back(entry.error);
}

void CenterMemory::merge(std::size_t center, const Entry& entry) {
  label_sums[center] += entry.label;
  round_sums[center] += static_cast<double>(entry.round);
  error_sums[center] += entry.error;
  const auto count = static_cast<double>(++label_counts[center]);
  const std::span<double> mean = rows.write(center);
  for (std::size_t k = 0; k < mean.size(); ++k) {
    mean[k] += (entry.row[k] - mean[k]) / count;
  }
}

CenterMemory CenterMemory::take(std::span<const std::int64_t> places) const {
  CenterMemory taken;
  taken.rows = RowBlocks(dimension());
  for (const std::int64_t place : places) {
    const auto at = static_cast<std::size_t>(place);
    taken.rows.add(rows[at]);
    taken.label_sums.push_back(label_sums[at]);
    taken.label_counts.push_back(label_counts[at]);
    taken.round_sums.push_back(round_sums[at]);
    taken.error_sums.push_back(error_sums[at]);
  }
  return taken;
}

void CenterMemory::put(std::span<const std::int64_t> places, const CenterMemory& others) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto at = static_cast<std::size_t>(places[i]);
    std::ranges::copy(others.rows[i], rows.write(at).begin());
    label_sums[at] = others.label_sums[i];
    label_counts[at] = others.label_counts[i];
    round_sums[at] = others.round_sums[i];
    error_sums[at] = others.error_sums[i];
  }
}

void CenterMemory::append(const CenterMemory& others) {
  const auto add = [](auto& own, const auto& more) { own.insert(own.end(), more.begin(), more.end()); };
  for (std::size_t i = 0; i < others.size(); ++i) {
    rows.add(others.rows[i]);
  }
  add(label_sums, others.label_sums);
  add(label_counts, others.label_counts);
  add(round_sums, others.round_sums);
  add(error_sums, others.error_sums);
}

// Few centers are standardized at a time, which saves memory for many features.
std::vector<double> CenterMemory::project(const FeatureView& view, std::span<const std::int64_t> places,
                                          std::span<const double> directions) const {
  constexpr std::size_t block = 16;
  const std::size_t d = dimension();
  const std::size_t width = directions.size() / d;
  std::vector<double> out(places.size() * width);
  std::vector<double> standard(block * d);
  for (std::size_t first = 0; first < places.size(); first += block) {
    const std::size_t count = std::min(block, places.size() - first);
    for (std::size_t i = 0; i < count; ++i) {
      view.standardize(rows[static_cast<std::size_t>(places[first + i])], {standard.data() + i * d, d});
    }
    project_rows({standard.data(), count * d}, directions, width, {out.data() + first * width, count * width});
  }
  return out;
}

}  // namespace ellipack
