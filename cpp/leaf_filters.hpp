// Two filters that exclude most points and leaves of a kd-tree before a search computes distances.
//
// Both process 64 points or leaves at a time in reduced precision and return one bit for each. They may pass points
// that are too far, but they never exclude a point that is near enough.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "simd.hpp"

namespace ellipack {

// One bit per point of a leaf, or per leaf of a group.
using LaneMask = std::uint64_t;
inline constexpr std::size_t lane_count = 64;

// Returns the bits of the first `count` lanes, from 1 to 64.
inline LaneMask first_lanes(std::size_t count) { return ~LaneMask{0} >> (lane_count - count); }

inline std::size_t lowest_lane(LaneMask lanes) { return static_cast<std::size_t>(std::countr_zero(lanes)); }

inline LaneMask without_lowest(LaneMask lanes) { return lanes & (lanes - 1); }

// The range of the points of a node along a coordinate.
struct Interval {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
};

// Number of coordinates after which a filter checks whether any lane is left.
inline constexpr std::size_t filter_step = 4;

// Returns the squared distance, summed from the first coordinate to the last.
inline double squared_distance(std::span<const double> query, std::span<const double> point) {
  double total = 0.0;
  std::size_t k = 0;
  for (; k + 4 <= query.size(); k += 4) {
    const auto difference = simd::load<simd::Double4>(&query[k]) - simd::load<simd::Double4>(&point[k]);
    const simd::Double4 square = difference * difference;
    total = (((total + square[0]) + square[1]) + square[2]) + square[3];
  }
  const auto add = [&](std::size_t i) {
    const double difference = query[i] - point[i];
    total += difference * difference;
  };
  switch (query.size() - k) {
    case 3:
      add(k++);
      [[fallthrough]];
    case 2:
      add(k++);
      [[fallthrough]];
    case 1:
      add(k);
      break;
    default:
      break;
  }
  return total;
}

inline double vector_length(std::span<const double> vector) {
  double total = 0.0;
  for (const double coordinate : vector) {
    total += coordinate * coordinate;
  }
  return std::sqrt(total);
}

// Returns an upper bound on the exact distance of points whose computed squared distance is at most `limit`. It allows
// for rounding errors and for squares that underflow.
inline double distance_bound(double limit) { return std::sqrt(limit) * (1.0 + 1e-9) + 1e-150; }

// 8-bit codes of the points of all leaves.
//
// Each leaf has a grid: `scale` cells per unit of length, the same along all coordinates, and an origin for each
// coordinate. The code of a point along a coordinate is the number of its cell, from 0 to 255.
//
// Proof that no near point is excluded. Let w be the scale, q the query, p a point, and Q and C their cells. Along
// coordinate k, w |q_k - p_k| and |Q_k - C_k| differ by less than 1, because both cells are rounded down, plus rounding
// errors of doubles, which are far less than 1e-9 of a cell. By the triangle inequality, the norms of both vectors over
// m coordinates differ by less than sqrt(m) (1 + 1e-9). Hence a point at a distance of at most r has |Q - C| <= w r +
// sqrt(m) (1 + 1e-9). Differences of cells are clipped at 255, cells of the query at 500 from the origin, and sums of
// squares at 65535. Clipping only decreases |Q - C|.
class LeafCodes {
 public:
  // Start of a search in its first leaf: a near point, and the other lanes that may be as near.
  struct Guess {
    double squared_distance;
    std::size_t lane;
    LaneMask others;
  };

  explicit LeafCodes(std::size_t dimension) : dimension_(dimension) {}

  void reserve(std::size_t leaves) {
    codes_.reserve(leaves * dimension_ * lane_count);
    grids_.reserve(leaves * (1 + dimension_));
  }

  void resize(std::size_t leaves) {
    codes_.resize(leaves * dimension_ * lane_count);
    grids_.resize(leaves * (1 + dimension_));
  }

  std::size_t memory_bytes() const { return codes_.capacity() + grids_.capacity() * sizeof(double); }

  // Returns whether a leaf has codes. A leaf has none if it is too wide, or too far from the origin for its width.
  bool has_codes(std::size_t leaf) const { return grid(leaf)[0] > 0.0; }

  // Writes the codes of one point. Returns false if it is outside of the grid.
  bool encode(std::size_t leaf, std::size_t lane, std::span<const double> point) {
    return encode_lanes(leaf, lane, point);
  }

  // Sets a new grid for the box of a leaf and writes the codes of its points, one per row.
  void encode_leaf(std::size_t leaf, std::span<const double> points, std::span<const Interval> box) {
    set_grid(leaf, box);
    if (!encode_lanes(leaf, 0, points)) {  // too far from the origin: doubles do not resolve the cells
      mutable_grid(leaf)[0] = 0.0;
    }
    // Lanes without a point repeat the first point, so that the lane with the smallest code distance always has a
    // point.
    const std::size_t size = points.size() / dimension_;
    for (std::size_t k = 0; k < dimension_; ++k) {
      std::uint8_t* const row = codes_.data() + (leaf * dimension_ + k) * lane_count;
      std::fill(row + size, row + lane_count, row[0]);
    }
  }

  // Returns whether the codes of a leaf are those of its points, one per row, and free lanes repeat the first point.
  bool match(std::size_t leaf, std::span<const double> points) const {
    const std::span<const double> cells = grid(leaf);
    bool equal = true;
    for (std::size_t i = 0; has_codes(leaf) && i < lane_count * dimension_; ++i) {
      const std::size_t k = i % dimension_;
      const double point = i < points.size() ? points[i] : points[k];
      equal &= codes_[(leaf * dimension_ + k) * lane_count + i / dimension_] ==
               std::floor((point - cells[1 + k]) * cells[0]);
    }
    return equal;
  }

  // Prefetches the data that `near` reads first.
  void prefetch(std::size_t leaf) const {
    __builtin_prefetch(grids_.data() + leaf * (1 + dimension_));
    for (std::size_t k = 0; k < std::min(filter_step, dimension_); ++k) {
      __builtin_prefetch(codes_.data() + (leaf * dimension_ + k) * lane_count);
    }
  }

  // Returns which of the `size` points of a leaf may be at a distance of at most `distance`.
  LaneMask near(std::size_t leaf, std::size_t size, std::span<const double> query, double distance) const {
    const LaneMask all = first_lanes(size);
    const std::size_t axes = std::min(filter_step, dimension_);
    const std::uint16_t limit = largest_sum(leaf, distance, axes);
    if (limit == full_sum) {
      return all;
    }
    const Sums sums = add_squares(leaf, query, 0, axes, Sums{});
    return narrow(leaf, query, distance, all & simd::at_most(sums, limit), sums).lanes;
  }

  // Finds the point with the smallest code distance along the first coordinates, or along all of them if many lanes are
  // left. In most metrics the first coordinates have the largest weights.
  Guess guess_nearest(std::size_t leaf, std::span<const double> points, std::span<const double> query) const {
    const LaneMask all = first_lanes(points.size() / dimension_);
    const auto distance_to = [&](std::size_t lane) {
      return squared_distance(query, points.subspan(lane * dimension_, dimension_));
    };
    if (!has_codes(leaf)) {
      return {distance_to(0), 0, all & ~LaneMask{1}};
    }
    const std::size_t axes = std::min(filter_step, dimension_);
    const Sums sums = add_squares(leaf, query, 0, axes, Sums{});
    const std::size_t lane = lane_of_smallest(sums);
    Guess guess{distance_to(lane), lane, all & ~(LaneMask{1} << lane)};
    const double distance = distance_bound(guess.squared_distance);
    const std::uint16_t limit = largest_sum(leaf, distance, axes);
    if (limit == full_sum) {
      return guess;
    }
    const Narrowed narrowed = narrow(leaf, query, distance, guess.others & simd::at_most(sums, limit), sums);
    guess.others = narrowed.lanes;
    // If at least three lanes are left, the sums cover all coordinates and may give a better guess.
    if (without_lowest(without_lowest(guess.others)) != 0) {
      const std::size_t other = lane_of_smallest(narrowed.sums);
      const double other_distance = distance_to(other);
      if (other_distance < guess.squared_distance) {
        const std::uint16_t closer = largest_sum(leaf, distance_bound(other_distance), dimension_);
        guess = {other_distance, other, guess.others & simd::at_most(narrowed.sums, closer) & ~(LaneMask{1} << other)};
      }
    }
    return guess;
  }

 private:
  // Sums of squared differences between the cells of the query and those of 64 points (squared code distances).
  using Sums = simd::UInt16x64;

  struct Narrowed {
    LaneMask lanes;
    Sums sums;
  };

  static constexpr std::size_t part_lanes = simd::lane_count<simd::UInt16s>;
  static constexpr std::uint16_t full_sum = 65535;
  static constexpr std::int16_t largest_difference = 255;  // its square is less than full_sum
  static constexpr double farthest_cell = 500.0;       // cells of queries are clipped to this distance from the origin
  static constexpr double max_cells = 255.0;           // along the widest coordinate of a leaf
  static constexpr double max_cells_by_root = 1000.0;  // bound on cells * sqrt(dimension): sums must not saturate
  static constexpr double slack = 1.125;  // ratio of the width of the grid to that of the box, for later insertions
  static constexpr double finest_scale = 1e140;
  static constexpr double widest_leaf = 1e150;  // in wider leaves, differences could overflow

  std::span<const double> grid(std::size_t leaf) const {
    return std::span(grids_).subspan(leaf * (1 + dimension_), 1 + dimension_);
  }

  std::span<double> mutable_grid(std::size_t leaf) {
    return std::span(grids_).subspan(leaf * (1 + dimension_), 1 + dimension_);
  }

  void set_grid(std::size_t leaf, std::span<const Interval> box) {
    double width = 0.0;
    for (const Interval& side : box) {
      width = std::max(width, side.high - side.low);
    }
    const std::span<double> cells = mutable_grid(leaf);
    if (width >= widest_leaf) {
      std::ranges::fill(cells, 0.0);
      return;
    }
    const double count = std::min(max_cells, max_cells_by_root / std::sqrt(static_cast<double>(dimension_)));
    const double scale = width > 0.0 ? std::min(count / (slack * width), finest_scale) : finest_scale;
    cells[0] = scale;
    for (std::size_t k = 0; k < dimension_; ++k) {
      cells[1 + k] = 0.5 * box[k].low + 0.5 * box[k].high - 128.0 / scale;
    }
  }

  // Returns the largest squared code distance, over `axes` coordinates, of a point at a distance of at most `distance`.
  std::uint16_t largest_sum(std::size_t leaf, double distance, std::size_t axes) const {
    if (!has_codes(leaf)) {
      return full_sum;
    }
    const double cells = grid(leaf)[0] * distance + std::sqrt(static_cast<double>(axes)) * (1.0 + 1e-9);
    return cells * cells < full_sum ? static_cast<std::uint16_t>(cells * cells) : full_sum;
  }

  // Writes the codes of points, one per row, starting at a lane. Returns false if a point is outside of the grid.
  bool encode_lanes(std::size_t leaf, std::size_t first_lane, std::span<const double> points) {
    const std::span<const double> cells = grid(leaf);
    const auto scale = simd::splat<simd::Double4>(cells[0]);
    const std::size_t size = points.size() / dimension_;
    bool inside = true;
    for (std::size_t k = 0; k < dimension_; k += filter_step) {
      const std::size_t axes = std::min(filter_step, dimension_ - k);
      const simd::Double4 origin = simd::load_first(&cells[1 + k], axes);
      std::uint8_t* const codes = codes_.data() + (leaf * dimension_ + k) * lane_count + first_lane;
      for (std::size_t row = 0; row < size; ++row) {
        const simd::Double4 cell = (simd::load_first(&points[row * dimension_ + k], axes) - origin) * scale;
        const simd::Double4 cut = simd::min(simd::max(cell, simd::Double4{}), simd::splat<simd::Double4>(255.5));
        const auto code = __builtin_convertvector(cut, simd::Int32x4);
        for (std::size_t i = 0; i < axes; ++i) {
          codes[i * lane_count + row] = static_cast<std::uint8_t>(code[i]);
          inside &= cell[i] >= 0.0 && cell[i] < 256.0;
        }
      }
    }
    return inside;
  }

  // Adds the squared differences along at most four coordinates.
  [[gnu::always_inline]] Sums add_squares(std::size_t leaf, std::span<const double> query, std::size_t start,
                                          std::size_t stop, Sums sums) const {
    const std::span<const double> cells = grid(leaf);
    const simd::Double4 position =
        (simd::load_first(&query[start], stop - start) - simd::load_first(&cells[1 + start], stop - start)) * cells[0];
    const auto farthest = simd::splat<simd::Double4>(farthest_cell);
    // Round down, for negative numbers as well.
    const auto cell =
        __builtin_convertvector(simd::min(simd::max(position, -farthest), farthest) + farthest, simd::Int32x4) -
        static_cast<int>(farthest_cell);
    const std::uint8_t* codes = codes_.data() + (leaf * dimension_ + start) * lane_count;
    for (std::size_t i = 0; i < stop - start; ++i) {
      const auto all_cells = simd::splat<simd::Int16s>(static_cast<std::int16_t>(cell[i]));
      for (std::size_t part = 0; part < sums.size(); ++part) {
        const auto code = simd::widen(simd::load<simd::UInt8s>(codes + i * lane_count + part * part_lanes));
        const auto apart = simd::min(simd::abs(code - all_cells), simd::splat<simd::Int16s>(largest_difference));
        const auto difference = std::bit_cast<simd::UInt16s>(apart);
        sums[part] = simd::saturating_add(sums[part], difference * difference);
      }
    }
    return sums;
  }

  static std::size_t lane_of_smallest(const Sums& sums) {
    simd::UInt16s minimum = sums[0];
    for (std::size_t part = 1; part < sums.size(); ++part) {
      minimum = simd::min(minimum, sums[part]);
    }
    return lowest_lane(simd::at_most(sums, simd::smallest(minimum)));
  }

  // Returns which of the given lanes may be near enough. `sums` cover the first coordinates; the other coordinates are
  // added as needed.
  [[gnu::always_inline]] Narrowed narrow(std::size_t leaf, std::span<const double> query, double distance,
                                         LaneMask lanes, Sums sums) const {
    std::size_t done = filter_step;
    while (done < dimension_ && without_lowest(lanes) != 0) {  // for one lane, computing the distance is faster
      // Two steps between checks, since after the first ones most lanes stay for several steps.
      for (const std::size_t end = std::min(dimension_, done + 2 * filter_step); done < end;) {
        const std::size_t stop = std::min(end, done + filter_step);
        sums = add_squares(leaf, query, done, stop, sums);
        done = stop;
      }
      lanes &= simd::at_most(sums, largest_sum(leaf, distance, done));
    }
    return {lanes, sums};
  }

  std::size_t dimension_;
  simd::AlignedVector<std::uint8_t> codes_;  // (leaf, coordinate, lane)
  std::vector<double> grids_;                // (leaf, scale followed by origins)
};

// The boxes of all leaves in single precision, in groups of 64 leaves.
//
// Proof that no near leaf is excluded. Let u = 2^-24 be the unit roundoff of floats, q the query and p a point. Along
// coordinate k, the error of the computed q_k - p_k is at most u (|q_k| + |p_k|), because both are rounded, and |p_k|
// <= |q_k| + |q_k - p_k|. So the error of the root of the sum of squares is at most u (2 |q| + |q - p|), and squaring
// and adding d numbers multiplies it by at most (1 + u)^(d + 3). `largest_sum` allows for more than that, and for
// underflow. Rounding is monotone: the computed distance to a box is at most the computed distance to any point in it.
// So no leaf with a point within the limit is excluded.
class LeafBoxes {
 public:
  explicit LeafBoxes(std::size_t dimension) : dimension_(dimension) {}

  void reserve(std::size_t leaves) { sides_.reserve(entries(leaves)); }

  void resize(std::size_t leaves) { sides_.resize(entries(leaves), std::numeric_limits<float>::infinity()); }

  std::size_t memory_bytes() const { return sides_.capacity() * sizeof(float); }

  void set(std::size_t leaf, std::span<const Interval> box) {
    const std::size_t first = leaf / lane_count * 2 * dimension_ * lane_count + leaf % lane_count;
    for (std::size_t k = 0; k < dimension_; ++k) {
      sides_[first + 2 * k * lane_count] = static_cast<float>(box[k].low);
      sides_[first + (2 * k + 1) * lane_count] = static_cast<float>(box[k].high);
    }
  }

  // Returns whether the stored box of a leaf is the rounded `box`.
  bool match(std::size_t leaf, std::span<const Interval> box) const {
    const std::size_t first = leaf / lane_count * 2 * dimension_ * lane_count + leaf % lane_count;
    bool equal = true;
    for (std::size_t k = 0; k < dimension_; ++k) {
      equal &= sides_[first + 2 * k * lane_count] == static_cast<float>(box[k].low);
      equal &= sides_[first + (2 * k + 1) * lane_count] == static_cast<float>(box[k].high);
    }
    return equal;
  }

  // Returns an upper bound on the computed float32 squared distance of points at a squared distance of at most `limit`.
  // `length` is the norm of the query.
  static float largest_sum(double limit, double length, std::size_t dimension) {
    constexpr double unit = 0x1p-24;
    const double distance = std::sqrt(limit) * (1.0 + 8.0 * unit) + 4.0 * unit * length;
    const double sum = distance * distance * (1.0 + (2.0 * static_cast<double>(dimension) + 16.0) * unit) + 1e-37;
    // Floats could overflow for larger values, so every leaf counts as near.
    return sum < 3e38 && length < 1e15 ? static_cast<float>(sum) : std::numeric_limits<float>::infinity();
  }

  // Returns which of the `size` leaves of a group may have a point at a float32 squared distance of at most `limit`.
  LaneMask near(std::size_t group, std::size_t size, std::span<const double> query, float limit) const {
    if (limit == std::numeric_limits<float>::infinity()) {
      return first_lanes(size);
    }
    Sums sums{};
    LaneMask lanes = 1;
    for (std::size_t start = 0; start < dimension_ && lanes != 0; start += filter_step) {
      add_squares(group, query, start, std::min(dimension_, start + filter_step), sums);
      lanes = at_most(sums, limit);
    }
    return lanes;  // boxes of lanes without a leaf are at infinity
  }

 private:
  // Sums of squared differences between the query and the boxes of 64 leaves.
  static constexpr std::size_t part_lanes = simd::lane_count<simd::Floats>;
  using Sums = std::array<simd::Floats, lane_count / part_lanes>;

  std::size_t entries(std::size_t leaves) const {
    return (leaves + lane_count - 1) / lane_count * 2 * dimension_ * lane_count;
  }

  void add_squares(std::size_t group, std::span<const double> query, std::size_t start, std::size_t stop,
                   Sums& sums) const {
    for (std::size_t k = start; k < stop; ++k) {
      const auto position = simd::splat<simd::Floats>(static_cast<float>(query[k]));
      const float* low = sides_.data() + (group * dimension_ + k) * 2 * lane_count;
      const float* high = low + lane_count;
      for (std::size_t part = 0; part < sums.size(); ++part) {
        const simd::Floats inside = simd::min(simd::max(position, simd::load<simd::Floats>(low + part * part_lanes)),
                                              simd::load<simd::Floats>(high + part * part_lanes));
        const simd::Floats gap = position - inside;
        sums[part] += gap * gap;
      }
    }
  }

  static LaneMask at_most(const Sums& sums, float limit) {
    const auto limits = simd::splat<simd::Floats>(limit);
    LaneMask lanes = 0;
    for (std::size_t part = 0; part < sums.size(); ++part) {
      lanes |= LaneMask{simd::at_most(sums[part], limits)} << (part * part_lanes);
    }
    return lanes;
  }

  std::size_t dimension_;
  simd::AlignedVector<float> sides_;  // (group, coordinate, low or high, lane)
};

}  // namespace ellipack
