// A table of rows of equal length, in blocks that copies share until one of them changes.
//
// With many features, a table takes most of the memory of a learner. A copy takes no time, a change copies only the
// block of its row, and a table that grows is not moved.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "copy_on_write.hpp"
#include "reserve_more.hpp"

namespace ellipack {

class RowBlocks {
 public:
  RowBlocks() = default;

  // Makes an empty table.
  explicit RowBlocks(std::size_t width)
      : width_(width), rows_per_block_(std::max<std::size_t>(1, block_entries / std::max<std::size_t>(1, width))) {}

  // Copies rows of `width` entries.
  RowBlocks(std::span<const double> rows, std::size_t width) : RowBlocks(width) {
    const std::size_t entries = rows_per_block_ * width;
    for (std::size_t first = 0; first < rows.size(); first += entries) {
      const std::span<const double> block = rows.subspan(first, std::min(entries, rows.size() - first));
      blocks_.emplace_back(std::vector(block.begin(), block.end()));
    }
    size_ = width > 0 ? rows.size() / width : 0;
  }

  std::size_t width() const { return width_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  std::span<const double> operator[](std::size_t row) const {
    assert(row < size_);
    return {blocks_[row / rows_per_block_]->data() + row % rows_per_block_ * width_, width_};
  }

  // Returns a row for changes. The first call copies its block, if others share it; later ones do not throw.
  std::span<double> write(std::size_t row) {
    assert(row < size_);
    return {blocks_[row / rows_per_block_].write().data() + row % rows_per_block_ * width_, width_};
  }

  // Allocates what `add` needs, so that it does not throw.
  void make_room() {
    if (size_ == blocks_.size() * rows_per_block_) {
      // The first block grows, so that small tables are small. Later ones get their memory at once.
      std::vector<double> block;
      block.reserve(size_ > 0 ? rows_per_block_ * width_ : width_);
      blocks_.emplace_back(std::move(block));
    }
    reserve_more(blocks_.back(), width_);
  }

  // Adds a row of zeros, and returns it for changes.
  std::span<double> add() {
    make_room();
    std::vector<double>& last = blocks_.back().write();
    last.resize(last.size() + width_);
    ++size_;
    return std::span(last).last(width_);
  }

  void add(std::span<const double> row) {
    assert(row.size() == width_);
    std::ranges::copy(row, add().begin());
  }

  // Returns all rows, one after the other.
  std::vector<double> values() const {
    std::vector<double> all;
    all.reserve(size_ * width_);
    for (const CopyOnWrite<std::vector<double>>& block : blocks_) {
      all.insert(all.end(), block->begin(), block->end());
    }
    return all;
  }

 private:
  static constexpr std::size_t block_entries = 1 << 14;  // 128 KB

  std::size_t width_ = 0;
  std::size_t rows_per_block_ = block_entries;
  std::size_t size_ = 0;
  std::vector<CopyOnWrite<std::vector<double>>> blocks_;  // all but the last one are full
};

}  // namespace ellipack
