// What the binding files share: arrays of NumPy as spans, and vectors as arrays of NumPy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ellipack {

namespace nb = nanobind;

// Arrays that are taken: of the right type, on the CPU and in C order. Others are refused by nanobind, never copied.
using Vector = nb::ndarray<const double, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using IntVector = nb::ndarray<const std::int64_t, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MutableVector = nb::ndarray<double, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Arrays that are returned.
using FloatArray = nb::ndarray<nb::numpy, double>;
using IntArray = nb::ndarray<nb::numpy, std::int64_t>;

template <typename T, typename... Options>
std::span<T> span_of(const nb::ndarray<T, Options...>& array) {
  return {array.data(), array.size()};
}

// Hands a vector over to NumPy without a copy.
template <typename T>
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T>(owned->data(), shape, owner);
}

template <typename T>
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T>&& values) {
  const std::size_t size = values.size();
  return to_numpy(std::move(values), {size});
}

template <typename T>
nb::ndarray<nb::numpy, T> copy_to_numpy(std::span<const T> values, std::initializer_list<std::size_t> shape) {
  return to_numpy(std::vector<T>(values.begin(), values.end()), shape);
}

// Raises ValueError unless an array has as many entries as it must.
inline void require_size(const char* name, std::size_t size, std::size_t expected) {
  if (size != expected) {
    throw std::invalid_argument(std::string(name) + " must have " + std::to_string(expected) + " entries, got " +
                                std::to_string(size));
  }
}

}  // namespace ellipack
