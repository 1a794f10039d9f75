// Features that summarize earlier labels: those of the whole stream and, if rows have keys, those of the rows with the
// same key.
//
// The features are: the prediction from the other features alone, its error in the last round, and the last labels,
// newest first. With keys, they are followed by the error in the last round with this key, the last labels with this
// key, one less than above, and a mean of about the last ten labels with this key. The oldest known label takes the
// place of unknown ones; if there is none, the prediction does. An unknown error is 0.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

namespace ellipack {

struct PastSettings {
  std::size_t labels;    // number of last labels of the stream
  std::size_t max_keys;  // number of keys to remember; 0 if rows have no keys
};

// The last labels of the stream or of one key.
struct LabelHistory {
  static constexpr std::size_t max_labels = 8;

  std::int64_t count = 0;                   // number of labels
  double mean = 0.0;                        // exponential mean of the labels
  double error = 0.0;                       // label minus prediction in the last round
  std::array<double, max_labels> labels{};  // newest first

  void add(double label, double prediction);

  // Fills in the last labels, one per entry of `out`. The oldest known label takes the place of unknown ones, and
  // `prediction` if there is none.
  void fill_labels(double prediction, std::span<double> out) const;
};

class PastFeatures {
 public:
  explicit PastFeatures(const PastSettings& settings);

  PastFeatures(const PastFeatures& other);
  PastFeatures(PastFeatures&&) = default;
  PastFeatures& operator=(const PastFeatures&) = delete;
  PastFeatures& operator=(PastFeatures&&) = default;
  ~PastFeatures() = default;

  const PastSettings& settings() const { return settings_; }
  bool has_keys() const { return settings_.max_keys > 0; }
  std::size_t dimension() const;  // number of features

  // Computes the features of a row, whose prediction from the other features alone is `prediction`. Without keys, `key`
  // is ignored.
  void fill(std::int64_t key, double prediction, std::span<double> out) const;

  // Allocates what `add` needs for a key, so that it does not throw. The features stay the same.
  void make_room(std::int64_t key);

  // Learns the label of a row. If there are too many keys, the one that was learned least recently is forgotten.
  void add(std::int64_t key, double label, double prediction);

  // State, for files. Keys are in the order in which they were learned last.
  const LabelHistory& stream() const { return stream_; }
  std::vector<std::pair<std::int64_t, LabelHistory>> keys() const { return {by_use_.begin(), by_use_.end()}; }

  // Restores the state. Throws std::invalid_argument unless it is valid.
  void restore(const LabelHistory& stream, std::span<const std::pair<std::int64_t, LabelHistory>> keys);

 private:
  using Keys = std::list<std::pair<std::int64_t, LabelHistory>>;

  std::size_t key_labels() const { return settings_.labels > 1 ? settings_.labels - 1 : 1; }

  PastSettings settings_;
  LabelHistory stream_;
  Keys by_use_;  // most recently learned last
  Keys spare_;   // at most one key without labels, for which `make_room` was called last
  std::unordered_map<std::int64_t, Keys::iterator> positions_;  // of the keys in both lists
};

}  // namespace ellipack
