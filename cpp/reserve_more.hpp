// Room for more entries of a vector, so that adding them does not throw.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "copy_on_write.hpp"

namespace ellipack {

// Reserves memory for `count` more entries. Capacities grow by half, so that entries are rarely moved.
template <typename T>
void reserve_more(std::vector<T>& values, std::size_t count) {
  if (values.capacity() - values.size() < count) {
    values.reserve(values.size() + std::max(count, values.size() / 2 + 16));
  }
}

// The same for a vector that others may share. If it is copied, the copy gets the memory at once.
template <typename T>
void reserve_more(CopyOnWrite<std::vector<T>>& values, std::size_t count) {
  if (!values.is_shared()) {
    reserve_more(values.write(), count);
    return;
  }
  std::vector<T> copy;
  copy.reserve(values->size() + std::max(count, values->size() / 2 + 16));
  copy.assign(values->begin(), values->end());
  values = CopyOnWrite(std::move(copy));
}

}  // namespace ellipack
