#include "gradients.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include "simd.hpp"

namespace ellipack {

namespace {

using simd::Double4;
constexpr std::size_t lanes = simd::lane_count<Double4>;

std::size_t padded(std::size_t width) { return (width + lanes - 1) / lanes * lanes; }

// Returns base^power as a product from left to right.
template <int power, typename T>
T power_of(T base) {
  T out = base;
  for (int i = 1; i < power; ++i) {
    out = out * base;
  }
  return out;
}

// Returns the kernel (1 - u^inner)^outer, given u^2 <= 1.
template <int inner, int outer>
Double4 kernel_weight(Double4 squared) {
  if constexpr (inner == 2) {
    return power_of<outer>(1.0 - squared);
  } else {
    return power_of<outer>(1.0 - power_of<inner>(simd::sqrt(squared)));
  }
}

// Sums over rows for the kernel regressions at four shifted queries.
struct RegressionSums {
  Double4 weights{};
  Double4 labels{};
  Double4 nearby{};  // number of rows within half a bandwidth

  template <int inner, int outer>
  void add(Double4 squared_ratio, double label) {
    nearby += squared_ratio <= 0.25 ? simd::splat<Double4>(1.0) : Double4{};
    const Double4 weight = kernel_weight<inner, outer>(simd::min(squared_ratio, simd::splat<Double4>(1.0)));
    weights += weight;
    labels += weight * label;
  }
};

struct ShiftedSums {
  RegressionSums forward;
  RegressionSums back;
};

// The rows in the support of the kernels around an anchor.
struct SupportRows {
  std::span<const std::int32_t> positions;
  std::span<const double> squared_distances;  // to the anchor, plus the squared step
  std::span<const double> rows;
  std::span<const double> labels;
  std::size_t stride;
};

// Returns the sums for the queries that are shifted along four coordinates, starting at `first`. All shifted queries
// share one vector of differences: |x +- step e_i - x_j|^2 = |x - x_j|^2 +- 2 step (x - x_j)_i + step^2.
template <int inner, int outer>
ShiftedSums sum_over_rows(const SupportRows& support, Double4 anchor, std::size_t first, double step,
                          double bandwidth) {
  const double twice_step = 2.0 * step;
  const double inverse = 1.0 / (bandwidth * bandwidth);
  const Double4 zero{};
  ShiftedSums sums;
  for (std::size_t m = 0; m < support.positions.size(); ++m) {
    const auto row = static_cast<std::size_t>(support.positions[m]);
    const Double4 shift = twice_step * (anchor - simd::load<Double4>(&support.rows[row * support.stride + first]));
    const auto squared = simd::splat<Double4>(support.squared_distances[m]);
    sums.forward.add<inner, outer>(simd::max(squared + shift, zero) * inverse, support.labels[row]);
    sums.back.add<inner, outer>(simd::max(squared - shift, zero) * inverse, support.labels[row]);
  }
  return sums;
}

using SumOverRows = ShiftedSums (*)(const SupportRows&, Double4, std::size_t, double, double);

SumOverRows sum_function(int inner, int outer) {
  constexpr SumOverRows functions[3][3] = {
      {sum_over_rows<1, 1>, sum_over_rows<1, 2>, sum_over_rows<1, 3>},
      {sum_over_rows<2, 1>, sum_over_rows<2, 2>, sum_over_rows<2, 3>},
      {sum_over_rows<3, 1>, sum_over_rows<3, 2>, sum_over_rows<3, 3>},
  };
  return functions[inner - 1][outer - 1];
}

}  // namespace

struct DifferenceEstimator::Workspace {
  std::vector<double> padded_anchor;
  std::vector<std::int32_t> positions;
  std::vector<double> squared_distances;
};

DifferenceEstimator::DifferenceEstimator(std::span<const double> rows, std::span<const double> labels,
                                         const DifferenceSettings& settings)
    : settings_(settings),
      dimension_(labels.empty() ? 0 : rows.size() / labels.size()),
      stride_(padded(dimension_)),
      rows_(labels.size() * stride_),
      unpadded_(rows.begin(), rows.end()),
      labels_(labels.begin(), labels.end()),
      all_rows_(labels.size()),
      mean_label_(std::accumulate(labels.begin(), labels.end(), 0.0) / static_cast<double>(labels.size())) {
  if (dimension_ == 0 || rows.size() != labels.size() * dimension_) {
    throw std::invalid_argument("rows must not be empty and must have one label per row");
  }
  for (const int power : {settings.inner_power, settings.outer_power}) {
    if (power < 1 || power > 3) {
      throw std::invalid_argument("powers of the kernel must be 1, 2 or 3, got " + std::to_string(power));
    }
  }
  for (std::size_t row = 0; row < labels.size(); ++row) {
    std::copy_n(&rows[row * dimension_], dimension_, &rows_[row * stride_]);
  }
  std::iota(all_rows_.begin(), all_rows_.end(), 0);
}

void DifferenceEstimator::build_index() { tree_.emplace(unpadded_, dimension_); }

DifferenceGradients DifferenceEstimator::gradients(std::span<const double> anchors) const {
  const std::size_t count = anchors.size() / dimension_;
  DifferenceGradients out{std::vector<double>(anchors.size()), std::vector<std::uint8_t>(anchors.size())};
  Workspace work{std::vector<double>(stride_), {}, {}};
  for (std::size_t a = 0; a < count; ++a) {
    const std::size_t first = a * dimension_;
    gradient(anchors.subspan(first, dimension_), work, std::span(out.gradients).subspan(first, dimension_),
             std::span(out.enough_mass).subspan(first, dimension_));
  }
  return out;
}

std::span<const std::int32_t> DifferenceEstimator::rows_in_support(std::span<const double> anchor,
                                                                   Workspace& work) const {
  if (!tree_) {
    return all_rows_;
  }
  // All shifted balls are within this radius. Rows outside would add only zeros to the sums.
  const double support_radius = (settings_.bandwidth + settings_.step) * (1.0 + 1e-9);
  work.positions.clear();
  for (const Neighbor& neighbor : tree_->within(anchor, support_radius * support_radius)) {
    work.positions.push_back(neighbor.position);
  }
  std::ranges::sort(work.positions);  // fixes the order of the sums
  return work.positions;
}

void DifferenceEstimator::gradient(std::span<const double> anchor, Workspace& work, std::span<double> out,
                                   std::span<std::uint8_t> enough_mass) const {
  const std::span<const std::int32_t> positions = rows_in_support(anchor, work);
  work.squared_distances.resize(positions.size());
  for (std::size_t m = 0; m < positions.size(); ++m) {
    const double* row = &rows_[static_cast<std::size_t>(positions[m]) * stride_];
    double squared = settings_.step * settings_.step;
    for (std::size_t i = 0; i < dimension_; ++i) {
      squared += (anchor[i] - row[i]) * (anchor[i] - row[i]);
    }
    work.squared_distances[m] = squared;
  }
  std::ranges::copy(anchor, work.padded_anchor.begin());
  const SupportRows support{positions, work.squared_distances, rows_, labels_, stride_};
  const SumOverRows sum = sum_function(settings_.inner_power, settings_.outer_power);
  for (std::size_t first = 0; first < dimension_; first += lanes) {
    const auto at = simd::load<Double4>(&work.padded_anchor[first]);
    const auto [forward, back] = sum(support, at, first, settings_.step, settings_.bandwidth);
    for (std::size_t lane = 0; lane < std::min(lanes, dimension_ - first); ++lane) {
      const double ahead = regression(forward.labels[lane], forward.weights[lane]);
      const double behind = regression(back.labels[lane], back.weights[lane]);
      const bool enough = std::min(forward.nearby[lane], back.nearby[lane]) >= settings_.mass_threshold;
      enough_mass[first + lane] = enough;
      out[first + lane] = enough ? (ahead - behind) / (2.0 * settings_.step) : 0.0;
    }
  }
}

double DifferenceEstimator::regression(double weighted_labels, double weight) const {
  return weight > 0.0 ? weighted_labels / weight : mean_label_;
}

namespace {

// At or below this trace, neighbors are treated as equal: the square of the slope could overflow.
constexpr double smallest_trace = 1e-290;

// Solves a positive definite system in place by Cholesky factorization. Reads the lower triangle of `gram` and
// overwrites it with the factor.
void solve_positive_definite(std::span<double> gram, std::size_t stride, std::span<double> vector) {
  const std::size_t d = vector.size();
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double value = gram[i * stride + j];
      for (std::size_t m = 0; m < j; ++m) {
        value -= gram[i * stride + m] * gram[j * stride + m];
      }
      gram[i * stride + j] = i == j ? std::sqrt(value) : value / gram[j * stride + j];
    }
  }
  for (std::size_t i = 0; i < d; ++i) {
    double value = vector[i];
    for (std::size_t m = 0; m < i; ++m) {
      value -= gram[i * stride + m] * vector[m];
    }
    vector[i] = value / gram[i * stride + i];
  }
  for (std::size_t i = d; i-- > 0;) {
    double value = vector[i];
    for (std::size_t m = i + 1; m < d; ++m) {
      value -= gram[m * stride + i] * vector[m];
    }
    vector[i] = value / gram[i * stride + i];
  }
}

// A weighted ridge regression of labels on offsets from a query. Neighbors are sorted by distance.
class LocalFit {
 public:
  LocalFit(std::size_t neighbors, std::size_t dimension)
      : dimension_(dimension),
        stride_(padded(dimension)),
        offsets_(neighbors * stride_),
        labels_(neighbors),
        weights_(neighbors),
        mean_(stride_),
        gram_(dimension * stride_) {}

  // Loads the neighbors of a query and their labels.
  void read(const KdTree& tree, std::span<const double> labels, std::span<const double> query,
            std::span<const Neighbor> neighbors) {
    const double farthest = neighbors.back().squared_distance;
    for (std::size_t j = 0; j < neighbors.size(); ++j) {
      const std::span<const double> point = tree.coordinates(neighbors[j]);
      for (std::size_t i = 0; i < dimension_; ++i) {
        offsets_[j * stride_ + i] = point[i] - query[i];
      }
      labels_[j] = labels[static_cast<std::size_t>(neighbors[j].position)];
      weights_[j] = farthest > 0.0 ? 1.0 - neighbors[j].squared_distance / farthest : 0.0;
    }
  }

  // Computes the slope; 0 if all neighbors are equal.
  void slope(double ridge, std::span<double> out) {
    std::ranges::fill(out, 0.0);
    if (!center()) {
      return;
    }
    const double trace = accumulate(out);
    if (trace <= smallest_trace) {
      std::ranges::fill(out, 0.0);
      return;
    }
    for (std::size_t i = 0; i < dimension_; ++i) {
      gram_[i * stride_ + i] += ridge * trace / static_cast<double>(dimension_);
    }
    solve_positive_definite(gram_, stride_, out);
  }

 private:
  // Subtracts the weighted means from offsets and labels. Returns false if all weights are 0.
  bool center() {
    double total = 0.0;
    double mean_label = 0.0;
    std::ranges::fill(mean_, 0.0);
    for (std::size_t j = 0; j < weights_.size(); ++j) {
      total += weights_[j];
      mean_label += weights_[j] * labels_[j];
      for (std::size_t i = 0; i < stride_; i += lanes) {
        simd::store(&mean_[i],
                    simd::load<Double4>(&mean_[i]) + weights_[j] * simd::load<Double4>(&offsets_[j * stride_ + i]));
      }
    }
    if (total <= 0.0) {
      return false;
    }
    for (std::size_t j = 0; j < weights_.size(); ++j) {
      labels_[j] -= mean_label / total;
      for (std::size_t i = 0; i < stride_; i += lanes) {
        double* at = &offsets_[j * stride_ + i];
        simd::store(at, simd::load<Double4>(at) - simd::load<Double4>(&mean_[i]) / total);
      }
    }
    return true;
  }

  // Computes the lower triangle of the Gram matrix and the right-hand side. Returns the trace.
  double accumulate(std::span<double> right) {
    std::ranges::fill(gram_, 0.0);
    for (std::size_t j = 0; j < weights_.size(); ++j) {
      const double* offset = &offsets_[j * stride_];
      for (std::size_t i = 0; i < dimension_; ++i) {
        const double scaled = weights_[j] * offset[i];
        right[i] += scaled * labels_[j];
        for (std::size_t m = 0; m <= i; m += lanes) {
          double* at = &gram_[i * stride_ + m];
          simd::store(at, simd::load<Double4>(at) + scaled * simd::load<Double4>(&offset[m]));
        }
      }
    }
    double trace = 0.0;
    for (std::size_t i = 0; i < dimension_; ++i) {
      trace += gram_[i * stride_ + i];
    }
    return trace;
  }

  std::size_t dimension_;
  std::size_t stride_;
  std::vector<double> offsets_;  // one row per neighbor, padded with zeros
  std::vector<double> labels_;
  std::vector<double> weights_;
  std::vector<double> mean_;
  std::vector<double> gram_;
};

}  // namespace

std::vector<double> local_slopes(const KdTree& tree, std::span<const double> labels, std::span<const double> queries,
                                 std::size_t neighbors, double ridge) {
  const std::size_t d = tree.dimension();
  if (neighbors < 1 || neighbors > tree.size()) {
    throw std::invalid_argument("neighbors must be from 1 to " + std::to_string(tree.size()) + ", got " +
                                std::to_string(neighbors));
  }
  std::vector<double> slopes(queries.size());
  std::vector<Neighbor> found(neighbors);
  LocalFit fit(neighbors, d);
  for (std::size_t first = 0; first < queries.size(); first += d) {
    const std::span<const double> query = queries.subspan(first, d);
    const std::size_t count = tree.k_nearest(query, std::numeric_limits<double>::infinity(), found);
    assert(count == neighbors);
    static_cast<void>(count);
    fit.read(tree, labels, query, found);
    fit.slope(ridge, std::span(slopes).subspan(first, d));
  }
  return slopes;
}

}  // namespace ellipack
