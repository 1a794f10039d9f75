#include "past_features.hpp"

#include <algorithm>
#include <cmath>

#include "checks.hpp"

namespace ellipack {

namespace {

constexpr double mean_rate = 2.0 / 11.0;  // weight of the newest label: an exponential mean of about ten labels
constexpr double largest_past = 1e100;    // of labels, means and errors in files

void check(const LabelHistory& history) {
  require(history.count >= 0 && history.count <= largest_count, "the count of a history must be from 0 to 2^52");
  require(std::abs(history.mean) <= largest_past && std::abs(history.error) <= largest_past &&
              all_within(history.labels, largest_past),
          "the values of a history must be finite and at most 1e100 in size");
}

}  // namespace

void LabelHistory::add(double label, double prediction) {
  ++count;
  mean += std::max(1.0 / static_cast<double>(count), mean_rate) * (label - mean);
  error = label - prediction;
  std::copy_backward(labels.begin(), labels.end() - 1, labels.end());
  labels[0] = label;
}

void LabelHistory::fill_labels(double prediction, std::span<double> out) const {
  for (std::size_t k = 0; k < out.size(); ++k) {
    const auto known = static_cast<std::size_t>(std::min<std::int64_t>(count, max_labels));
    out[k] = known == 0 ? prediction : labels[std::min(k, known - 1)];
  }
}

PastFeatures::PastFeatures(const PastSettings& settings) : settings_(settings) {
  require(settings.labels >= 1 && settings.labels <= LabelHistory::max_labels, "labels must be from 1 to 8");
}

PastFeatures::PastFeatures(const PastFeatures& other)
    : settings_(other.settings_), stream_(other.stream_), by_use_(other.by_use_) {
  positions_.reserve(by_use_.size());
  for (auto entry = by_use_.begin(); entry != by_use_.end(); ++entry) {
    positions_.emplace(entry->first, entry);
  }
}

std::size_t PastFeatures::dimension() const { return 2 + settings_.labels + (has_keys() ? 2 + key_labels() : 0); }

void PastFeatures::fill(std::int64_t key, double prediction, std::span<double> out) const {
  out[0] = prediction;
  out[1] = stream_.error;
  stream_.fill_labels(prediction, out.subspan(2, settings_.labels));
  if (!has_keys()) {
    return;
  }
  const auto found = positions_.find(key);
  const LabelHistory history = found == positions_.end() ? LabelHistory{} : found->second->second;
  const std::span<double> by_key = out.subspan(2 + settings_.labels);
  by_key[0] = history.error;
  history.fill_labels(prediction, by_key.subspan(1, key_labels()));
  by_key[1 + key_labels()] = history.count > 0 ? history.mean : prediction;
}

void PastFeatures::make_room(std::int64_t key) {
  if (!has_keys() || positions_.contains(key)) {
    return;
  }
  if (!spare_.empty()) {
    positions_.erase(spare_.front().first);
    spare_.clear();
  }
  spare_.emplace_back(key, LabelHistory{});
  positions_.emplace(key, spare_.begin());
}

void PastFeatures::add(std::int64_t key, double label, double prediction) {
  if (has_keys()) {
    make_room(key);
    const Keys::iterator entry = positions_.find(key)->second;
    by_use_.splice(by_use_.end(), entry->second.count == 0 ? spare_ : by_use_, entry);
    entry->second.add(label, prediction);
    if (by_use_.size() > settings_.max_keys) {
      positions_.erase(by_use_.front().first);
      by_use_.pop_front();
    }
  }
  stream_.add(label, prediction);
}

void PastFeatures::restore(const LabelHistory& stream, std::span<const std::pair<std::int64_t, LabelHistory>> keys) {
  require(keys.size() <= settings_.max_keys, "there must be at most max_keys keys");
  check(stream);
  PastFeatures restored(settings_);
  restored.stream_ = stream;
  for (const auto& [key, history] : keys) {
    check(history);
    require(history.count >= 1, "the count of a key must be at least 1");
    restored.by_use_.emplace_back(key, history);
    require(restored.positions_.emplace(key, std::prev(restored.by_use_.end())).second, "keys must be distinct");
  }
  *this = std::move(restored);
}

}  // namespace ellipack
