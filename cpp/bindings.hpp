// Helpers for the binding files: conversions between NumPy arrays, spans and vectors, and checks of arguments.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ellipack {

namespace nb = nanobind;

// Argument arrays: of the right type, on the CPU and in C order. nanobind copies other arrays. An output argument must
// be declared noconvert(); otherwise the function would write to the copy.
using Vector = nb::ndarray<const double, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using IntVector = nb::ndarray<const std::int64_t, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MutableMatrix = nb::ndarray<double, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using MutableVector = nb::ndarray<double, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Returned arrays, of one dimension or more. Their caster raises a MemoryError if NumPy gets no memory for one.
template <typename T>
struct NumpyArray : nb::ndarray<nb::numpy, T> {
  using nb::ndarray<nb::numpy, T>::ndarray;
};
using FloatArray = NumpyArray<double>;
using IntArray = NumpyArray<std::int64_t>;

template <typename T, typename... Options>
std::span<T> span_of(const nb::ndarray<T, Options...>& array) {
  return {array.data(), array.size()};
}

// Moves a vector into a NumPy array without a copy.
template <typename T>
NumpyArray<T> to_numpy(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  nb::capsule owner(owned.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return NumpyArray<T>(owned.release()->data(), shape, owner);
}

template <typename T>
NumpyArray<T> to_numpy(std::vector<T>&& values) {
  const std::size_t size = values.size();
  return to_numpy(std::move(values), {size});
}

template <typename T>
NumpyArray<T> copy_to_numpy(std::span<const T> values, std::initializer_list<std::size_t> shape) {
  return to_numpy(std::vector<T>(values.begin(), values.end()), shape);
}

inline FloatArray as_vector(const std::vector<double>& values) {
  return copy_to_numpy<double>(values, {values.size()});
}

inline FloatArray as_matrix(const std::vector<double>& values, std::size_t columns) {
  return copy_to_numpy<double>(values, {values.size() / columns, columns});
}

inline IntArray as_ints(const std::vector<std::int64_t>& values) {
  return copy_to_numpy<std::int64_t>(values, {values.size()});
}

// The signature of __reduce__ in the stub; nanobind does not infer the entries of a tuple.
inline nb::sig reduce_signature() { return nb::sig("def __reduce__(self) -> tuple[object, ...]"); }

// Return policy of properties that return a new array. With nb::rv_policy::move, nanobind would copy it.
inline constexpr auto new_array = nb::rv_policy::automatic;

// Returns an uninitialized NumPy array.
template <typename T>
NumpyArray<T> empty_array(std::initializer_list<std::size_t> shape) {
  std::size_t size = 1;
  for (const std::size_t length : shape) {
    size *= length;
  }
  auto entries = std::make_unique_for_overwrite<T[]>(size);
  nb::capsule owner(entries.get(), [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return NumpyArray<T>(entries.release(), shape, owner);
}

// Copies a NumPy array to a vector.
template <typename T, typename... Options>
std::vector<std::remove_const_t<T>> vector_of(const nb::ndarray<T, Options...>& array) {
  return {array.data(), array.data() + array.size()};
}

// A Python sequence of objects. Functions copy its entries themselves: if memory runs out while nanobind copies them to
// a vector, it ends the process.
template <typename T>
using Sequence = nb::typed<nb::sequence, T>;

template <typename T>
std::vector<T> vector_of(const Sequence<T>& objects) {
  std::vector<T> out;
  for (const nb::handle object : objects) {
    out.push_back(nb::cast<T>(object));
  }
  return out;
}

// Raises ValueError unless an array has the expected number of entries.
inline void require_size(const char* name, std::size_t size, std::size_t expected) {
  if (size != expected) {
    throw std::invalid_argument(std::string(name) + " must have " + std::to_string(expected) + " entries, got " +
                                std::to_string(size));
  }
}

// Raises ValueError unless a table has the expected number of columns.
inline void require_width(const Matrix& rows, std::size_t width) {
  if (rows.shape(1) != width) {
    throw std::invalid_argument("rows must have " + std::to_string(width) + " columns, got " +
                                std::to_string(rows.shape(1)));
  }
}

// Raises ValueError unless all entries are finite. Compiled code does not check again.
inline void require_finite(const char* name, const Matrix& rows) {
  const std::span<const double> entries = span_of(rows);
  bool finite = true;
  for (const double entry : entries) {  // no early exit, so that the loop is vectorized
    finite &= std::isfinite(entry);
  }
  if (finite) {
    return;
  }
  const auto bad = std::ranges::find_if(entries, [](double entry) { return !std::isfinite(entry); });
  const auto place = static_cast<std::size_t>(bad - entries.begin());
  throw std::invalid_argument(std::string(name) + " must be finite, got " + std::to_string(*bad) + " at row " +
                              std::to_string(place / rows.shape(1)) + ", column " +
                              std::to_string(place % rows.shape(1)));
}

// Functions that register the classes and functions of one binding file.
void bind_aggregation(nb::module_& m);
void bind_conformal(nb::module_& m);
void bind_gradients(nb::module_& m);
void bind_importance(nb::module_& m);
void bind_intrinsic_dimension(nb::module_& m);
void bind_kd_tree(nb::module_& m);
void bind_local_models(nb::module_& m);
void bind_metric_core(nb::module_& m);
void bind_metric_parts(nb::module_& m);
void bind_packing(nb::module_& m);
void bind_packing_classifier(nb::module_& m);
void bind_packing_tree(nb::module_& m);
void bind_past(nb::module_& m);

}  // namespace ellipack

template <typename T>
struct nanobind::detail::type_caster<ellipack::NumpyArray<T>>
    : nanobind::detail::type_caster<nanobind::ndarray<nanobind::numpy, T>> {
  // Without memory, NumPy does not see the buffer of the array, and returns an array of no dimensions with one object.
  static handle from_cpp(const ndarray<numpy, T>& array, rv_policy policy, cleanup_list* cleanup) noexcept {
    const handle result = type_caster<ndarray<numpy, T>>::from_cpp(array, policy, cleanup);
    if (result.is_valid() && PyObject_Length(result.ptr()) < 0) {
      result.dec_ref();
      PyErr_NoMemory();
      return {};
    }
    return result;
  }
};
