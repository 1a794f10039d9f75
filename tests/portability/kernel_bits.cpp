// Prints the bits of results of the kernels on a fixed stream: neighbors, local models, scores, gradients and rounds of
// Algorithm 1. `make check-arm` compares those of two processors.

#include <bit>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <span>
#include <vector>

#include "gradients.hpp"
#include "kd_tree.hpp"
#include "local_models.hpp"
#include "loo_scoring.hpp"
#include "packing_core.hpp"

namespace {

using namespace ellipack;

constexpr std::size_t count = 600;
constexpr std::size_t dimension = 5;
constexpr std::size_t neighbors = 20;

void print(const char* name, std::span<const double> values) {
  std::uint64_t digest = 14695981039346656037u;  // FNV-1a
  for (const double value : values) {
    digest = (digest ^ std::bit_cast<std::uint64_t>(value)) * 1099511628211u;
  }
  std::printf("%s: %zu values, %016llx, last %.17g\n", name, values.size(), static_cast<unsigned long long>(digest),
              values.back());
}

// Returns numbers from -1/2 to 1/2 of a linear congruential generator, which are exact.
std::vector<double> numbers(std::size_t size, std::uint64_t seed) {
  std::vector<double> out;
  for (std::size_t i = 0; i < size; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    out.push_back(static_cast<double>(seed >> 40) / 16777216.0 - 0.5);
  }
  return out;
}

void print_local_models(const KdTree& tree, std::span<const double> labels, std::span<const double> queries) {
  LocalModels models(neighbors, 3, dimension);
  std::vector<Neighbor> found(neighbors);
  std::vector<double> distances;
  std::vector<double> predictions;
  for (std::size_t first = 0; first < queries.size(); first += dimension) {
    const std::span<const double> query = queries.subspan(first, dimension);
    Neighborhood near(neighbors, dimension);
    near.count = tree.k_nearest(query, std::numeric_limits<double>::infinity(), found);
    for (std::size_t j = 0; j < near.count; ++j) {
      const auto at = static_cast<std::size_t>(found[j].position);
      distances.push_back(near.squared_distances[j] = found[j].squared_distance);
      near.labels[j] = labels[at] - labels[static_cast<std::size_t>(found[0].position)];
      near.label_counts[j] = static_cast<double>(1 + at % 3);
      near.ages[j] = static_cast<double>(at) / count;
      near.trend[j] = near.labels[j] / 4.0;
      near.forgetting_trend[j] = near.labels[j] / 8.0;
      for (std::size_t k = 0; k < dimension; ++k) {
        near.offset(j)[k] = tree.coordinates(found[j])[k] - query[k];
      }
    }
    std::vector<double> experts(LocalModels::experts);
    std::vector<double> slope(3);
    models.predict(near, experts, slope);
    predictions.insert(predictions.end(), experts.begin(), experts.end());
    predictions.insert(predictions.end(), slope.begin(), slope.end());
  }
  print("distances of neighbors", distances);
  print("local models", predictions);
}

void print_scores(std::span<const double> rows, const std::vector<double>& labels) {
  std::vector<std::int64_t> validation;
  for (std::int64_t at = 0; at < 64; ++at) {
    validation.push_back(9 * at);
  }
  LeaveOneOutScorer scorer(labels, validation, neighbors);
  std::vector<double> scores;
  for (const double last : {1.0, 0.5, 0.1}) {
    scores.push_back(scorer.score(rows, std::vector<double>{1.0, 0.9, 0.8, 0.7, last}));
  }
  print("leave-one-out scores", scores);
}

void print_packing(std::span<const double> rows, const std::vector<double>& labels) {
  PackingCore core(dimension, {10, 40, 160, 400});
  std::vector<double> predictions(count);
  std::vector<double> bounds(count * 2 * ConformalIntervals::size);
  core.learn(rows, labels, true, {predictions, bounds, ConformalIntervals::all_positions});
  print("predictions of Algorithm 1", predictions);
  print("intervals of Algorithm 1", bounds);
}

}  // namespace

int main() {
  const std::vector<double> rows = numbers(count * dimension, 1);
  const std::vector<double> queries = numbers(40 * dimension, 2);
  std::vector<double> labels = numbers(count, 3);
  for (std::size_t i = 0; i < count; ++i) {
    labels[i] = 0.5 + rows[i * dimension] * rows[i * dimension + 1] + labels[i] / 8.0;
  }
  const std::span<const double> points = rows;
  KdTree tree(points.first(count * dimension / 2), dimension);
  for (std::size_t at = count / 2; at < count; ++at) {
    tree.insert(points.subspan(at * dimension, dimension));
  }
  print_local_models(tree, labels, queries);
  print_scores(rows, labels);
  print("local slopes", local_slopes(tree, labels, queries, neighbors, 0.01));
  print("differences", DifferenceEstimator(rows, labels, {1.0, 0.1, 2.0, 2, 2}).gradients(queries).gradients);
  print_packing(rows, labels);
}
