// An aggregation of predictions with a stack beside it: a weighted mean, a least-squares correction of it, and a top
// aggregation of both. The top aggregation keeps the guarantee of the weighted mean.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "aggregation.hpp"
#include "checks.hpp"
#include "least_squares.hpp"

namespace ellipack {

// Range to which predictions are clipped.
struct PredictionRange {
  double low;
  double high;
  double fallback;  // for NaN, which results from overflow

  double clip(double value) const { return std::isnan(value) ? fallback : std::min(std::max(value, low), high); }
};

struct StackedAggregation {
  BernsteinAggregation experts;
  LeastSquares stack;        // of the deviations of the experts from their weighted mean
  BernsteinAggregation top;  // of the weighted mean and the stack

  // Buffers of a round.
  struct Workspace {
    explicit Workspace(std::size_t experts) : weights(experts), deviations(experts), buffer(experts) {}

    std::vector<double> weights;
    std::vector<double> deviations;            // deviations of the experts from their weighted mean
    std::array<double, 2> mean_and_stacked{};  // predictions of the aggregation and of the stack
    std::array<double, 2> top_weights{};       // weights of these in the top aggregation
    double prediction = 0.0;
    std::vector<double> buffer;
  };

  std::size_t size() const { return experts.size(); }

  // Throws std::invalid_argument unless the parts are valid and have the same number of experts.
  void check() const {
    experts.check();
    stack.check();
    top.check();
    require(stack.size() == size(), "the aggregation and the stack must have one entry per expert");
    require(top.size() == 2, "the top aggregation must have two entries");
  }

  // Clips the predictions of the experts and returns the prediction of the whole.
  double aggregate(std::span<double> predictions, const PredictionRange& range, Workspace& work) const {
    for (double& prediction : predictions) {
      prediction = range.clip(prediction);
    }
    experts.compute_weights(work.weights);
    const double mean = dot(work.weights, predictions);
    double stacked = mean;
    for (std::size_t k = 0; k < predictions.size(); ++k) {
      work.deviations[k] = predictions[k] - mean;
      stacked += stack.coefficients[k] * work.deviations[k];
    }
    work.mean_and_stacked = {mean, range.clip(stacked)};
    top.compute_weights(work.top_weights);
    work.prediction = dot(work.top_weights, work.mean_and_stacked);
    return work.prediction;
  }

  // Allocates what `update` needs, so that it does not throw.
  void make_room() { stack.make_room(); }

  // Learns the label of the predictions that were aggregated last in `work`.
  void update(std::span<const double> predictions, double label, Workspace& work) {
    top.update(work.mean_and_stacked, work.prediction, label);
    experts.update(predictions, work.mean_and_stacked[0], label);
    stack.update(work.deviations, label - work.mean_and_stacked[0], work.buffer);
  }
};

}  // namespace ellipack
