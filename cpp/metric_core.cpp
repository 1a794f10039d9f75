#include "metric_core.hpp"

#include <algorithm>
#include <cmath>
#include <future>

#include "checks.hpp"

namespace ellipack {

namespace {

constexpr std::size_t rows_per_thread = 16;  // for fewer rows, starting a thread takes longer than predicting

void check_labels(std::span<const double> labels) {
  require(MetricCore::accepts_labels(labels), "labels must be finite and at most 1e60 in size");
}

void check_rows(std::span<const double> rows, std::size_t count, std::size_t d) {
  require(rows.size() == count * d, "rows must have one entry per feature");
  require(MetricCore::accepts_rows(rows), "rows must be finite and at most 1e140 in size");
}

// Returns intervals around a prediction, whose sides are at least as wide as those of another prediction.
ConformalIntervals::Bounds widened_bounds(MetricRounds::Published published, const MetricRounds::Published& other) {
  for (std::size_t k = 0; k < ConformalIntervals::size; ++k) {
    double& lower = published.bounds[k];
    double& upper = published.bounds[ConformalIntervals::size + k];
    lower = std::min(lower, published.prediction - (other.prediction - other.bounds[k]));
    upper = std::max(upper, published.prediction + (other.bounds[ConformalIntervals::size + k] - other.prediction));
  }
  return published.bounds;
}

// Writes what was published for a row.
void write(const MetricRounds::Published& published, std::size_t row, const PredictionOutput& output) {
  output.predictions[row] = published.prediction;
  if (output.has_bounds()) {
    output.write_bounds(row, published.bounds);
  }
}

}  // namespace

void SquaredErrors::add(double label, double without, double with) {
  ++rounds;
  without_past += (without - label) * (without - label);
  with_past += (with - label) * (with - label);
}

void PastParts::check(std::size_t dimension, std::int64_t clock) const {
  rounds.check();
  combination.check();
  const std::size_t own = features.dimension();
  require(rounds.centers.dimension() == own || rounds.centers.dimension() == own + dimension,
          "the learner that sees the past must see all features or none");
  require(rounds.clock == clock, "both learners must have the same number of rounds");
  require(combination.size() == 2, "the combination must have two entries");
  require(active_from >= 0 && active_from <= largest_count, "active_from must be from 0 to 2^52");
  for (const double sum :
       {active_errors.without_past, active_errors.with_past, total_errors.without_past, total_errors.with_past}) {
    require(sum >= 0.0 && std::isfinite(sum), "sums of squared errors must be finite and >= 0");
  }
  for (const std::int64_t count : {active_errors.rounds, total_errors.rounds}) {
    require(count >= 0 && count <= clock, "the number of errors must be at most that of the rounds");
  }
}

void CoreParts::check() const {
  if (past) {
    past->check(plain.centers.dimension(), plain.clock);
  }
  if (importance) {
    require(importance->dimension == plain.centers.dimension(), "importance must have as many features as the centers");
    require(importance->past_dimension == (past ? past->features.dimension() : 0),
            "importance must have as many features of the past as the learner that sees it");
  }
}

MetricCore::Past::Past(const MetricSettings& settings, PastParts parts)
    : rounds({settings.neighbors, settings.past_max_centers(), settings.label_margin}, std::move(parts.rounds)),
      features(std::move(parts.features)),
      combination(std::move(parts.combination)),
      active_from(parts.active_from),
      active_errors(parts.active_errors),
      total_errors(parts.total_errors) {}

MetricCore::PastWorkspace::PastWorkspace(const Past& past, const MetricRounds::Workspace* first)
    : row(past.rounds.dimension()), rounds(past.rounds, first), combination(predictions.size()) {}

MetricCore::Workspace::Workspace(const MetricCore& core, const Workspace* first)
    : plain(core.plain_, first != nullptr ? &first->plain : nullptr) {
  if (core.past_) {
    past = std::make_unique<PastWorkspace>(*core.past_, first != nullptr ? &first->past->rounds : nullptr);
  }
}

MetricCore::MetricCore(const MetricSettings& settings, CoreParts parts) : plain_(settings, std::move(parts.plain)) {
  if (parts.past) {
    parts.past->check(plain_.dimension(), plain_.clock());
    past_ = std::make_unique<Past>(settings, std::move(*parts.past));
  }
  if (parts.importance) {
    importance_ = std::make_unique<ColumnImportance>(std::move(*parts.importance));
  }
}

MetricCore::MetricCore(const MetricCore& other) : MetricCore(other, std::shared_lock(other.mutex_)) {}

MetricCore::MetricCore(const MetricCore& other, const std::shared_lock<FairSharedMutex>& /*lock*/)
    : plain_(other.plain_),
      past_(other.past_ ? std::make_unique<Past>(*other.past_) : nullptr),
      importance_(other.importance_ ? std::make_unique<ColumnImportance>(*other.importance_) : nullptr) {}

std::int64_t MetricCore::clock() const {
  const std::shared_lock lock(mutex_);
  return plain_.clock();
}

std::size_t MetricCore::size() const {
  const std::shared_lock lock(mutex_);
  return plain_.size();
}

std::vector<double> MetricCore::expert_weights() const {
  const std::shared_lock lock(mutex_);
  return plain_.expert_weights();
}

std::span<const double> MetricCore::past_feature_scales() const {
  require(has_past(), "the core must see the past");
  return past_->rounds.feature_scales();
}

SquaredErrors MetricCore::past_errors() const {
  require(has_past(), "the core must see the past");
  const std::shared_lock lock(mutex_);
  return past_->total_errors;
}

CoreParts MetricCore::parts() const {
  const std::shared_lock lock(mutex_);
  CoreParts copy{plain_.parts(), std::nullopt, std::nullopt};
  if (importance_) {
    copy.importance = importance_->parts();
  }
  if (past_) {
    copy.past.emplace(PastParts{past_->rounds.parts(), past_->features, past_->combination, past_->active_from,
                                past_->active_errors, past_->total_errors});
  }
  return copy;
}

CoreParts MetricCore::release_parts() {
  CoreParts parts{plain_.release_parts(), std::nullopt, std::nullopt};
  if (importance_) {
    parts.importance = importance_->parts();
  }
  if (past_) {
    parts.past.emplace(PastParts{past_->rounds.release_parts(), std::move(past_->features),
                                 std::move(past_->combination), past_->active_from, past_->active_errors,
                                 past_->total_errors});
  }
  return parts;
}

bool MetricCore::accepts_rows(std::span<const double> rows) {
  return std::ranges::all_of(rows, [](double value) { return std::abs(value) <= MetricRounds::largest_feature; });
}

bool MetricCore::accepts_labels(std::span<const double> labels) {
  return std::ranges::all_of(labels, [](double label) { return std::abs(label) <= MetricRounds::largest_label; });
}

void MetricCore::predict(std::span<const double> rows, const PredictionOutput& output, std::size_t threads) const {
  const std::size_t count = output.predictions.size();
  check_rows(rows, count, dimension());
  output.check(count);
  const std::shared_lock lock(mutex_);
  const std::size_t parts = std::clamp<std::size_t>(count / rows_per_thread, 1, std::max<std::size_t>(threads, 1));
  std::vector<std::future<void>> others;
  for (std::size_t part = 1; part < parts; ++part) {
    others.push_back(std::async(std::launch::async, [this, rows, output, part, parts, count] {
      predict_rows(rows, output, count * part / parts, count * (part + 1) / parts);
    }));
  }
  predict_rows(rows, output, 0, count / parts);
  for (std::future<void>& other : others) {
    other.get();
  }
}

// Predicts rows `first` to `last`. The caller holds the lock.
void MetricCore::predict_rows(std::span<const double> rows, const PredictionOutput& output, std::size_t first,
                              std::size_t last) const {
  std::unique_ptr<Workspace> work = acquire_workspace();
  for (std::size_t t = first; t < last; ++t) {
    output.predictions[t] = plain_.predict_row(rows.subspan(t * dimension(), dimension()), work->plain);
    if (output.has_bounds()) {
      output.write_bounds(t, publish_plain(*work).bounds);
    }
  }
  release_workspace(std::move(work));
}

MetricCore::ExpertPredictions MetricCore::expert_predictions(std::span<const double> row) const {
  check_rows(row, 1, dimension());
  const std::shared_lock lock(mutex_);
  std::unique_ptr<Workspace> work = acquire_workspace();
  plain_.predict_row(row, work->plain);
  ExpertPredictions predicted{work->plain.predictions, work->plain.aggregation.mean_and_stacked};
  release_workspace(std::move(work));
  return predicted;
}

PastFeatures MetricCore::past_features() const {
  require(has_past(), "the core must see the past");
  const std::shared_lock lock(mutex_);
  return past_->features;
}

void MetricCore::predict_next(std::span<const double> rows, std::span<const std::int64_t> keys,
                              std::span<const double> labels, PastFeatures* features, const PredictionOutput& output,
                              bool follows_unknown) const {
  const std::size_t count = output.predictions.size();
  check_rows(rows, count, dimension());
  output.check(count);
  require(has_past(), "the core must see the past");
  require(features == nullptr || features->dimension() == past_->features.dimension(),
          "features must be those of the core");
  require(labels.size() == count, "labels must have one entry per row");
  require(std::ranges::all_of(
              labels, [](double label) { return std::isnan(label) || std::abs(label) <= MetricRounds::largest_label; }),
          "labels must be NaN or at most 1e60 in size");
  require(!has_keys() || keys.size() == count, "keys must have one entry per row");
  const std::shared_lock lock(mutex_);
  std::unique_ptr<Workspace> work = acquire_workspace();
  std::optional<PastFeatures> copy;
  if (features == nullptr) {
    features = &copy.emplace(past_->features);
  }
  for (std::size_t t = 0; t < count; ++t) {
    const Row row{rows.subspan(t * dimension(), dimension()), has_keys() ? keys[t] : 0, {}, {}};
    const double prediction = predict_round(row, features, *work);
    output.predictions[t] = prediction;
    if (output.has_bounds()) {
      const MetricRounds::Published next = publish_next(*work);
      output.write_bounds(t, follows_unknown ? widened_bounds(next, publish_plain(*work)) : next.bounds);
    }
    follows_unknown = std::isnan(labels[t]);
    const double label = follows_unknown ? prediction : labels[t];
    if (!plain_.is_label_outlier(label)) {
      features->add(row.key, label, work->past->row[0]);
    }
  }
  release_workspace(std::move(work));
}

MetricCore::NextPrediction MetricCore::predict_next_row(std::span<const double> row, std::int64_t key) const {
  check_rows(row, 1, dimension());
  const std::shared_lock lock(mutex_);
  std::unique_ptr<Workspace> work = acquire_workspace();
  predict_round({row, key, {}, {}}, own_past(), *work);
  NextPrediction next{publish_next(*work), {}};
  if (past_) {
    const auto first = work->past->row.begin();
    next.past.assign(first, first + static_cast<std::ptrdiff_t>(past_->features.dimension()));
  }
  release_workspace(std::move(work));
  return next;
}

std::size_t MetricCore::learn(const Batch& batch, std::int64_t phase_end, const PredictionOutput& output,
                              const PredictionOutput& plain) {
  const auto& [rows, keys, labels, first, count] = batch;
  const std::size_t d = dimension();
  require(first <= labels.size() && count <= labels.size() - first, "first and count must be those of rows");
  require(rows.size() == labels.size() * d, "rows must have one entry per feature");
  check_rows(rows.subspan(first * d, count * d), count, d);
  check_labels(labels.subspan(first, count));
  output.check(labels.size());
  plain.check(plain.predictions.empty() ? 0 : labels.size());
  require(!has_keys() || keys.size() == labels.size(), "keys must have one entry per row");
  const std::unique_lock lock(mutex_);
  std::unique_ptr<Workspace> work = acquire_workspace();
  std::size_t at = first;
  for (; at < first + count && plain_.clock() + 1 < phase_end; ++at) {
    const Row row{rows.subspan(at * d, d), has_keys() ? keys[at] : 0, {}, {}};
    predict_round(row, own_past(), *work);
    if (fills_memory(labels[at], *work)) {
      break;
    }
    if (!plain.predictions.empty()) {
      write(publish_plain(*work), at, plain);
    }
    write(learn_round(row, labels[at], *work), at, output);
  }
  release_workspace(std::move(work));
  return at - first;
}

void MetricCore::check_row(const Row& row, double label) const {
  check_rows(row.features, 1, dimension());
  check_labels({&label, 1});
  require(row.past.empty() || (past_ && row.past.size() == past_->features.dimension()),
          "past must have one entry per feature of the past");
  require(all_within(row.past, largest_past), "past must be finite and at most 1e61 in size");
  require(row.bounds.empty() || row.bounds.size() == std::tuple_size_v<ConformalIntervals::Bounds>,
          "bounds must have two entries per coverage");
}

bool MetricCore::learn_row(const Row& row, double label) {
  check_row(row, label);
  const std::unique_lock lock(mutex_);
  std::unique_ptr<Workspace> work = acquire_workspace();
  predict_round(row, own_past(), *work);
  const bool has_room = !fills_memory(label, *work);
  if (has_room) {
    learn_round(row, label, *work);
  }
  release_workspace(std::move(work));
  return has_room;
}

std::pair<CoreParts, MetricRounds::Published> MetricCore::round_on_copy(const Row& row, double label) const {
  check_row(row, label);
  return MetricCore(*this).last_round(row, label);
}

std::pair<CoreParts, MetricRounds::Published> MetricCore::round_before_refit(const Row& row, double label) const {
  check_row(row, label);
  MetricCore after(*this);
  after.plain_.release_inverses();
  if (after.past_) {
    after.past_->rounds.release_inverses();
  }
  auto result = after.last_round(row, label);
  const LeastSquares empty{std::vector{0.0}, {0.0}};
  result.first.plain.regressions = {empty, empty};
  if (result.first.past) {
    result.first.past->rounds.regressions = {empty, empty};
  }
  return result;
}

// Runs a round, and moves all parts out. No other call may follow.
std::pair<CoreParts, MetricRounds::Published> MetricCore::last_round(const Row& row, double label) {
  Workspace work(*this);
  predict_round(row, own_past(), work);
  const MetricRounds::Published published = learn_round(row, label, work);
  return {release_parts(), published};
}

// Predicts a row without the past, computes the features of the past and, if the past is in use, combines the
// prediction with that of the learner that sees them.
double MetricCore::predict_round(const Row& row, const PastFeatures* features, Workspace& work) const {
  work.prediction = plain_.predict_row(row.features, work.plain);
  if (!past_) {
    return work.prediction;
  }
  PastWorkspace& past = *work.past;
  const std::span own(past.row.data(), features->dimension());
  if (row.past.empty()) {
    features->fill(row.key, work.prediction, own);
  } else {
    std::ranges::copy(row.past, own.begin());
  }
  append_features(row.features, past);
  if (past_->is_active()) {
    combine(past_->rounds.predict_row(past.row, past.rounds), work);
  }
  return work.prediction;
}

// Copies the features of a row behind those of the past, unless the learner that sees the past sees nothing else.
void MetricCore::append_features(std::span<const double> row, PastWorkspace& past) const {
  const std::size_t own = past_->features.dimension();
  if (past.row.size() > own) {
    std::ranges::copy(row, past.row.begin() + static_cast<std::ptrdiff_t>(own));
  }
}

// Combines the prediction of the learner without the past with that of the learner that sees the past.
void MetricCore::combine(double with_past, Workspace& work) const {
  PastWorkspace& past = *work.past;
  past.predictions = {work.prediction, with_past};
  work.prediction = past_->combination.aggregate(past.predictions, plain_.prediction_range(), past.combination);
}

// Returns the prediction from the features alone with its intervals.
MetricRounds::Published MetricCore::publish_plain(const Workspace& work) const {
  return plain_.publish(work.plain.aggregation.prediction, work.plain.relative_scale);
}

// Returns the prediction of the next row with its intervals. The neighbors are those of the learner that sees the past,
// if it is in use.
MetricRounds::Published MetricCore::publish_next(const Workspace& work) const {
  if (!past_) {
    return publish_plain(work);
  }
  const double scale = past_->is_active() ? work.past->rounds.relative_scale : work.plain.relative_scale;
  return past_->rounds.publish(work.prediction, scale);
}

bool MetricCore::fills_memory(double label, const Workspace& work) const {
  if (plain_.fills_memory(label, work.plain)) {
    return true;
  }
  return past_ && (past_->is_active() ? past_->rounds.fills_memory(label, work.past->rounds)
                                      : past_->rounds.fills_memory(label));
}

// Allocates what the round needs, so that a failure does not leave a part of it.
void MetricCore::make_room(const Row& row, double label, Workspace& work) {
  if (importance_) {
    importance_->make_room(plain_.clock());
  }
  plain_.make_room_to_learn(label, work.plain);
  if (!past_) {
    return;
  }
  past_->features.make_room(row.key);
  if (past_->is_active()) {
    past_->combination.make_room();
    past_->rounds.make_room_to_learn(label, work.past->rounds);
  } else {
    past_->rounds.make_room_to_store(work.past->row, label, work.past->rounds);
  }
}

// Learns a round completely or, if there is not enough memory, not at all. Returns what was published for it.
MetricRounds::Published MetricCore::learn_round(const Row& row, double label, Workspace& work) {
  if (importance_) {
    measure_importance(row.features, label, work);
  }
  make_room(row, label, work);
  if (importance_ && plain_.has_labels() && !plain_.is_label_outlier(label)) {
    add_importance(label, work);
  }
  MetricRounds::Published next = publish_next(work);
  if (!row.bounds.empty()) {
    std::ranges::copy(row.bounds, next.bounds.begin());
  }
  if (past_) {
    const MetricRounds::Published plain = publish_plain(work);
    learn_past(row, label, next, work);
    plain_.learn_row(label, plain, work.plain);
  } else {
    plain_.learn_row(label, next, work.plain);
  }
  return next;
}

void MetricCore::learn_past(const Row& row, double label, const MetricRounds::Published& published, Workspace& work) {
  PastWorkspace& past = *work.past;
  const bool counts = !plain_.is_label_outlier(label);
  const bool active = past_->is_active();
  const double without = work.plain.aggregation.prediction;
  if (counts) {
    past_->total_errors.add(label, without, work.prediction);
  }
  if (counts && active && plain_.has_labels()) {
    past_->active_errors.add(label, without, work.prediction);
    past_->combination.update(past.predictions, label, past.combination);
  }
  if (active) {
    past_->rounds.learn_row(label, published, past.rounds);
  } else {
    past_->rounds.store_row(label, published, past.rounds);
  }
  if (counts) {
    past_->features.add(row.key, label, past.row[0]);
  }
}

// Computes the rises of the surrogates with the features of an earlier row and, in some rounds, predicts the row once
// more with the features of a group from it.
void MetricCore::measure_importance(std::span<const double> row, double label, Workspace& work) const {
  if (!work.importance) {
    work.importance = std::make_unique<ImportanceWorkspace>(*this, work);
  }
  ImportanceWorkspace& measured = *work.importance;
  const ImportanceParts& parts = importance_->parts();
  const std::int64_t round = plain_.clock();
  measured.choice.reset();
  if (past_) {
    std::ranges::copy(std::span(work.past->row).first(measured.past.size()), measured.past.begin());
  }
  plain_.find_gradients(work.plain);
  if (parts.sample.empty()) {
    return;
  }
  plain_.find_slopes(parts.slope_model, work.plain, measured.surrogates);
  const std::size_t source = importance_->source_row(round);
  plain_.find_gaps(parts.row(source), work.plain, measured.surrogates.gaps);
  const ColumnImportance::Prediction usual{.value = work.prediction,
                                           .label = label,
                                           .range = plain_.prediction_range(),
                                           .row = work.plain.clipped,
                                           .source = parts.row(source),
                                           .surrogates = measured.surrogates};
  importance_->find_expected_rises(usual, measured.expected_rises);
  measured.choice = importance_->choose(round, measured.expected_rises);
  if (measured.choice) {
    std::ranges::copy(row, measured.row.begin());
    predict_replaced(source, parts.groups[measured.choice->group], measured);
  }
}

// Predicts the row of the measurement after the features of a group were taken from an earlier row.
void MetricCore::predict_replaced(std::size_t source, const FeatureGroup& group, ImportanceWorkspace& measured) const {
  const ImportanceParts& parts = importance_->parts();
  Workspace& replaced = measured.replaced;
  for (const std::int64_t feature : group.features) {
    const auto k = static_cast<std::size_t>(feature);
    measured.row[k] = parts.row(source)[k];
  }
  replaced.prediction = plain_.predict_row(measured.row, replaced.plain);
  if (past_) {
    // The first feature of the past is the prediction from the features of the row.
    PastWorkspace& past = *replaced.past;
    std::ranges::copy(group.uses_past ? parts.past_row(source) : std::span<const double>(measured.past),
                      past.row.begin());
    past.row[0] = replaced.prediction;
    append_features(measured.row, past);
    if (past_->is_active()) {
      combine(past_->rounds.predict_row(past.row, past.rounds), replaced);
    }
  }
}

void MetricCore::add_importance(double label, const Workspace& work) {
  const ImportanceWorkspace& measured = *work.importance;
  const bool has_source = !importance_->parts().sample.empty();
  importance_->add(
      {.number = plain_.clock(),
       .label = label,
       .prediction = work.prediction,
       .row = work.plain.clipped,
       .gradient = MetricRounds::gradient(work.plain),
       .scale = plain_.feature_scales(),
       .past = measured.past,
       .expected_rises = std::span(measured.expected_rises).first(has_source ? measured.expected_rises.size() : 0),
       .choice = measured.choice,
       .measured_prediction = measured.replaced.prediction});
}

std::unique_ptr<MetricCore::Workspace> MetricCore::acquire_workspace() const {
  {
    const std::scoped_lock lock(workspaces_mutex_);
    if (!free_workspaces_.empty()) {
      std::unique_ptr<Workspace> work = std::move(free_workspaces_.back());
      free_workspaces_.pop_back();
      return work;
    }
    free_workspaces_.reserve(++created_workspaces_);  // so that releasing it does not throw
  }
  return std::make_unique<Workspace>(*this);
}

void MetricCore::release_workspace(std::unique_ptr<Workspace> work) const {
  const std::scoped_lock lock(workspaces_mutex_);
  free_workspaces_.push_back(std::move(work));
}

}  // namespace ellipack
