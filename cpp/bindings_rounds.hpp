// Rounds of a core in whitened coordinates, as functions of Python.
#pragma once

#include <utility>
#include <vector>

#include "bindings.hpp"

namespace ellipack {

// Raises ValueError unless rows have the dimension of a core and are finite.
template <typename Core>
void require_rows(const Core& core, const Matrix& coordinates) {
  require_width(coordinates, core.dimension());
  require_finite("coordinates", coordinates);
}

// Runs one round per row and returns the predictions, each made before its label was learned. `options` are further
// arguments of the core.
template <typename Core, typename... Options>
FloatArray learn_rows(Core& core, const Matrix& coordinates, const Vector& labels, Options... options) {
  require_rows(core, coordinates);
  require_size("labels", labels.size(), coordinates.shape(0));
  std::vector<double> predictions;
  {
    const nb::gil_scoped_release release;
    predictions = core.learn(span_of(coordinates), span_of(labels), options...);
  }
  return to_numpy(std::move(predictions));
}

// Returns the prediction for each row.
template <typename Core>
FloatArray predict_rows(const Core& core, const Matrix& coordinates) {
  require_rows(core, coordinates);
  std::vector<double> predictions;
  {
    const nb::gil_scoped_release release;
    predictions = core.predict(span_of(coordinates));
  }
  return to_numpy(std::move(predictions));
}

// Returns a copy that Python owns.
template <typename Core>
Core* copy_core(const Core& core) {
  const nb::gil_scoped_release release;
  return new Core(core);
}

}  // namespace ellipack
