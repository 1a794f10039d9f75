// Fixed-width vectors, by the vector extension of GCC and Clang.
//
// Each lane is rounded like a scalar on every instruction set, so that vector and scalar code give the same bits.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#endif

namespace ellipack::simd {

template <typename T, int lanes>
struct VectorOf {
  typedef T type __attribute__((vector_size(lanes * sizeof(T))));
};

template <typename T, int lanes>
using Vec = typename VectorOf<T, lanes>::type;

using Double2 = Vec<double, 2>;
using Double4 = Vec<double, 4>;
using Double8 = Vec<double, 8>;
using Int32x4 = Vec<std::int32_t, 4>;
using UInt16x16 = Vec<std::uint16_t, 16>;
using Int16x16 = Vec<std::int16_t, 16>;

template <typename V>
using Lane = std::remove_cvref_t<decltype(V{}[0])>;

template <typename V>
inline constexpr int lane_count = sizeof(V) / sizeof(Lane<V>);

// Size of a register in bytes. Wider vectors use several registers.
#if defined(__AVX512F__)
inline constexpr int register_bytes = 64;
#elif defined(__AVX__)
inline constexpr int register_bytes = 32;
#else
inline constexpr int register_bytes = 16;
#endif

// Vectors of one register, but of at least 32 bytes.
inline constexpr int vector_bytes = register_bytes > 32 ? register_bytes : 32;
using Doubles = Vec<double, vector_bytes / 8>;
using Floats = Vec<float, vector_bytes / 4>;
using Int16s = Vec<std::int16_t, vector_bytes / 2>;
using UInt16s = Vec<std::uint16_t, vector_bytes / 2>;
using UInt8s = Vec<std::uint8_t, vector_bytes / 2>;  // as many as Int16s

// Allocates memory aligned to cache lines, so that rows of whole lines touch no extra line.
template <typename T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t line{64};

  CacheLineAllocator() = default;

  template <typename U>
  explicit(false) CacheLineAllocator(const CacheLineAllocator<U>& /*other*/) {}

  T* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
      throw std::bad_array_new_length();
    }
    return static_cast<T*>(::operator new(count * sizeof(T), line));
  }

  void deallocate(T* memory, std::size_t /*count*/) { ::operator delete(memory, line); }

  bool operator==(const CacheLineAllocator&) const = default;
};

template <typename T>
using AlignedVector = std::vector<T, CacheLineAllocator<T>>;

// Functions have other names for each instruction set. Kernels and bindings are compiled for different ones, which pass
// vectors in different ways, so that neither may call the functions of the other.
#if defined(__AVX512F__)
inline namespace avx512 {
#elif defined(__AVX__)
inline namespace avx {
#else
inline namespace baseline {
#endif

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

// Loads the first `count` numbers, up to four; the other lanes are 0.
inline Double4 load_first(const double* from, std::size_t count) {
  switch (count) {
    case 1:
      return Double4{from[0], 0.0, 0.0, 0.0};
    case 2:
      return Double4{from[0], from[1], 0.0, 0.0};
    case 3:
      return Double4{from[0], from[1], from[2], 0.0};
    default:
      return load<Double4>(from);
  }
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

template <typename V>
inline V abs(V values) {
  return max(values, -values);
}

// Returns `high` shifted by one lane; its first lane is the last one of `low`.
template <typename V>
inline V shift_in(V low, V high) {
  return [&]<int... lane>(std::integer_sequence<int, lane...>) {
    return __builtin_shufflevector(low, high, (lane + lane_count<V> - 1)...);
  }(std::make_integer_sequence<int, lane_count<V>>{});
}

inline auto low_half(UInt16x16 v) { return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7); }
inline auto high_half(UInt16x16 v) { return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15); }
inline auto low_half(Int16x16 v) { return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7); }
inline auto high_half(Int16x16 v) { return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15); }
inline auto low_half(Vec<float, 8> v) { return __builtin_shufflevector(v, v, 0, 1, 2, 3); }
inline auto high_half(Vec<float, 8> v) { return __builtin_shufflevector(v, v, 4, 5, 6, 7); }

// GCC does not generate the best instruction for the functions below, so they use intrinsics. On other processors they
// are plain loops or expressions, with the same results.

// Returns left + right, or 65535 on overflow.
inline UInt16s saturating_add(UInt16s left, UInt16s right) {
#if defined(__AVX512BW__)
  return std::bit_cast<UInt16s>(_mm512_adds_epu16(std::bit_cast<__m512i>(left), std::bit_cast<__m512i>(right)));
#elif defined(__AVX2__)
  return std::bit_cast<UInt16s>(_mm256_adds_epu16(std::bit_cast<__m256i>(left), std::bit_cast<__m256i>(right)));
#else
  return min(left, ~right) + right;
#endif
}

// Converts to 16 bits.
inline Int16s widen(UInt8s bytes) {
#if defined(__AVX512BW__)
  return std::bit_cast<Int16s>(_mm512_cvtepu8_epi16(std::bit_cast<__m256i>(bytes)));
#elif defined(__AVX2__)
  return std::bit_cast<Int16s>(_mm256_cvtepu8_epi16(std::bit_cast<__m128i>(bytes)));
#else
  return __builtin_convertvector(bytes, Int16s);
#endif
}

// Returns the smallest of 16 numbers.
inline std::uint16_t smallest(UInt16x16 values) {
  const auto eight = min(low_half(values), high_half(values));
#if defined(__SSE4_1__)
  return static_cast<std::uint16_t>(_mm_cvtsi128_si32(_mm_minpos_epu16(std::bit_cast<__m128i>(eight))));
#else
  const auto four = min(eight, __builtin_shufflevector(eight, eight, 4, 5, 6, 7, 0, 1, 2, 3));
  const auto two = min(four, __builtin_shufflevector(four, four, 2, 3, 0, 1, 6, 7, 4, 5));
  return two[0] < two[1] ? two[0] : two[1];
#endif
}

#if defined(__AVX512BW__)
inline std::uint16_t smallest(Vec<std::uint16_t, 32> values) {
  const auto halves = std::bit_cast<std::array<UInt16x16, 2>>(values);
  return smallest(min(halves[0], halves[1]));
}
#endif

// Returns a mask of the lanes that are set in the result of a comparison. Bits 0 to 15 come from `low`.
inline std::uint32_t to_bits(Int16x16 low, Int16x16 high) {
#if defined(__AVX2__)
  // The instruction packs each half of a register separately; the permutation restores the order of the lanes.
  const __m256i packed = _mm256_packs_epi16(std::bit_cast<__m256i>(low), std::bit_cast<__m256i>(high));
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_permute4x64_epi64(packed, 0b11011000)));
#elif defined(__SSE2__)
  const __m128i first = _mm_packs_epi16(std::bit_cast<__m128i>(low_half(low)), std::bit_cast<__m128i>(high_half(low)));
  const __m128i second =
      _mm_packs_epi16(std::bit_cast<__m128i>(low_half(high)), std::bit_cast<__m128i>(high_half(high)));
  const auto low_bits = static_cast<std::uint32_t>(_mm_movemask_epi8(first));
  const auto high_bits = static_cast<std::uint32_t>(_mm_movemask_epi8(second));
  return low_bits | high_bits << 16;
#else
  std::uint32_t bits = 0;
  for (int lane = 0; lane < 16; ++lane) {
    bits |= static_cast<std::uint32_t>(low[lane] & 1) << lane | static_cast<std::uint32_t>(high[lane] & 1)
                                                                    << (lane + 16);
  }
  return bits;
#endif
}

// 64 numbers of 16 bits.
using UInt16x64 = std::array<UInt16s, 128 / vector_bytes>;

// Returns a mask of the lanes that are at most `limit`.
inline std::uint64_t at_most(const UInt16x64& values, std::uint16_t limit) {
  const auto limits = splat<UInt16s>(limit);
#if defined(__AVX512BW__)
  const auto bits = [limits](UInt16s part) {
    return std::uint64_t{_mm512_cmple_epu16_mask(std::bit_cast<__m512i>(part), std::bit_cast<__m512i>(limits))};
  };
  return bits(values[0]) | bits(values[1]) << 32;
#else
  std::array<Int16s, 4> masks;
  for (std::size_t part = 0; part < masks.size(); ++part) {
    masks[part] = min(values[part], limits) == values[part];
  }
  return to_bits(masks[0], masks[1]) | std::uint64_t{to_bits(masks[2], masks[3])} << 32;
#endif
}

inline std::uint32_t at_most(Floats values, Floats limit) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(std::bit_cast<__m512>(values), std::bit_cast<__m512>(limit), _CMP_LE_OQ);
#elif defined(__AVX__)
  return static_cast<std::uint32_t>(_mm256_movemask_ps(std::bit_cast<__m256>(values <= limit)));
#elif defined(__SSE2__)
  const auto mask = std::bit_cast<Floats>(values <= limit);
  const auto low_bits = static_cast<std::uint32_t>(_mm_movemask_ps(std::bit_cast<__m128>(low_half(mask))));
  const auto high_bits = static_cast<std::uint32_t>(_mm_movemask_ps(std::bit_cast<__m128>(high_half(mask))));
  return low_bits | high_bits << 4;
#else
  std::uint32_t bits = 0;
  for (int lane = 0; lane < lane_count<Floats>; ++lane) {
    bits |= static_cast<std::uint32_t>(values[lane] <= limit[lane]) << lane;
  }
  return bits;
#endif
}

// The result of a comparison of doubles.
template <typename V>
using MaskOf = decltype(V{} <= V{});

// Returns a mask of the lanes that are set in it.
inline std::uint32_t to_bits(MaskOf<Double2> lanes) {
#if defined(__SSE2__)
  return static_cast<std::uint32_t>(_mm_movemask_pd(std::bit_cast<__m128d>(lanes)));
#else
  return static_cast<std::uint32_t>((lanes[0] & 1) | (lanes[1] & 2));
#endif
}

inline std::uint32_t to_bits(MaskOf<Double4> lanes) {
#if defined(__AVX__)
  return static_cast<std::uint32_t>(_mm256_movemask_pd(std::bit_cast<__m256d>(lanes)));
#else
  const auto low = __builtin_shufflevector(lanes, lanes, 0, 1);
  const auto high = __builtin_shufflevector(lanes, lanes, 2, 3);
  return to_bits(low) | to_bits(high) << 2;
#endif
}

// Returns a mask of the lanes that are at most `limit`.
inline std::uint32_t at_most(Double4 values, Double4 limit) { return to_bits(values <= limit); }

// Transposes a 4 x 4 matrix, given by its rows.
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

// Stores four values of each lane, each lane `stride` numbers after the one before.
inline void store_transposed(double* to, std::size_t stride, Double4 a, Double4 b, Double4 c, Double4 d) {
  transpose(a, b, c, d);
  store(to, a);
  store(to + stride, b);
  store(to + 2 * stride, c);
  store(to + 3 * stride, d);
}

// Stores the columns of an 8 x 8 matrix, given by its rows, one after the other.
inline void store_transposed(double* to, const std::array<Double8, 8>& rows) {
  std::array<Double8, 8> pairs;
  for (std::size_t i = 0; i < 8; i += 2) {
    pairs[i] = __builtin_shufflevector(rows[i], rows[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    pairs[i + 1] = __builtin_shufflevector(rows[i], rows[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  std::array<Double8, 8> halves;  // upper and then lower halves of columns k and k + 4
  for (std::size_t i = 0; i < 8; i += 4) {
    for (std::size_t k = 0; k < 2; ++k) {
      halves[i + k] = __builtin_shufflevector(pairs[i + k], pairs[i + k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      halves[i + k + 2] = __builtin_shufflevector(pairs[i + k], pairs[i + k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (std::size_t k = 0; k < 4; ++k) {
    store(to + 8 * k, __builtin_shufflevector(halves[k], halves[k + 4], 0, 1, 2, 3, 8, 9, 10, 11));
    store(to + 8 * (k + 4), __builtin_shufflevector(halves[k], halves[k + 4], 4, 5, 6, 7, 12, 13, 14, 15));
  }
}

}  // inline namespace
}  // namespace ellipack::simd
