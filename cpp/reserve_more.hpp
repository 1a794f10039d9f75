// Room for more entries of a vector, so that adding them does not throw.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace ellipack {

// Reserves memory for `count` more entries. Capacities grow by half, so that entries are rarely moved.
template <typename T>
void reserve_more(std::vector<T>& values, std::size_t count) {
  if (values.capacity() - values.size() < count) {
    values.reserve(values.size() + std::max(count, values.size() / 2 + 16));
  }
}

}  // namespace ellipack
