// Fixed-width vectors of numbers, by the vector extension of GCC and Clang.
//
// Each lane has the rounding that it would have alone, on every instruction set: what is computed several at a time has
// the same bits as what is computed one by one.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>

namespace ellipack::simd {

template <typename T, int lanes>
struct VectorOf {
  typedef T type __attribute__((vector_size(lanes * sizeof(T))));
};

template <typename T, int lanes>
using Vec = typename VectorOf<T, lanes>::type;

using Double4 = Vec<double, 4>;
using Float8 = Vec<float, 8>;

template <typename V>
using Lane = std::remove_cvref_t<decltype(V{}[0])>;

template <typename V>
inline constexpr int lane_count = sizeof(V) / sizeof(Lane<V>);

// Loads and stores need no alignment.
template <typename V>
inline V load(const Lane<V>* from) {
  V out;
  std::memcpy(&out, from, sizeof(V));
  return out;
}

template <typename V>
inline void store(Lane<V>* to, V values) {
  std::memcpy(to, &values, sizeof(V));
}

template <typename V>
inline V splat(Lane<V> value) {
  return value - V{};
}

template <typename V>
inline V max(V left, V right) {
  return left > right ? left : right;
}

template <typename V>
inline V min(V left, V right) {
  return left < right ? left : right;
}

template <typename V>
inline V sqrt(V values) {
  V out;
  for (int lane = 0; lane < lane_count<V>; ++lane) {
    out[lane] = std::sqrt(values[lane]);
  }
  return out;
}

// Rows become columns.
inline void transpose(Double4& a, Double4& b, Double4& c, Double4& d) {
  const Double4 ab_low = __builtin_shufflevector(a, b, 0, 4, 2, 6);
  const Double4 ab_high = __builtin_shufflevector(a, b, 1, 5, 3, 7);
  const Double4 cd_low = __builtin_shufflevector(c, d, 0, 4, 2, 6);
  const Double4 cd_high = __builtin_shufflevector(c, d, 1, 5, 3, 7);
  a = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
  b = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
  c = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
  d = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

}  // namespace ellipack::simd
