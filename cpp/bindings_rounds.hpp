// Rounds of a core in whitened coordinates, as functions of Python.
#pragma once

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "conformal.hpp"
#include "prediction_output.hpp"

namespace ellipack {

// Raises ValueError unless rows have the dimension of a core and are finite.
template <typename Core>
void require_rows(const Core& core, const Matrix& coordinates) {
  require_width(coordinates, core.dimension());
  require_finite("coordinates", coordinates);
}

// An array to fill with intervals, and the positions of the wanted coverages; nothing if they are not wanted.
using OptionalBounds = std::optional<MutableMatrix>;
using OptionalPositions = std::optional<Vector>;

// Checked positions of the wanted coverages.
inline std::vector<ConformalIntervals::Position> positions_of(const OptionalPositions& positions) {
  std::vector<ConformalIntervals::Position> made;
  if (positions) {
    std::ranges::transform(span_of(*positions), std::back_inserter(made), &ConformalIntervals::Position::of);
  }
  return made;
}

inline PredictionOutput output_to(std::vector<double>& predictions, const OptionalBounds& bounds,
                                  const std::vector<ConformalIntervals::Position>& positions) {
  return {predictions, bounds ? span_of(*bounds) : std::span<double>(), positions};
}

// Runs one round per row and returns the predictions, each made before its label was learned. `options` are further
// arguments of the core.
template <typename Core, typename... Options>
FloatArray learn_rows(Core& core, const Matrix& coordinates, const Vector& labels, Options... options,
                      const OptionalBounds& bounds, const OptionalPositions& positions) {
  require_rows(core, coordinates);
  require_size("labels", labels.size(), coordinates.shape(0));
  const std::vector<ConformalIntervals::Position> wanted = positions_of(positions);
  std::vector<double> predictions(labels.size());
  {
    const nb::gil_scoped_release release;
    core.learn(span_of(coordinates), span_of(labels), options..., output_to(predictions, bounds, wanted));
  }
  return to_numpy(std::move(predictions));
}

// Returns the prediction for each row.
template <typename Core>
FloatArray predict_rows(const Core& core, const Matrix& coordinates, const OptionalBounds& bounds,
                        const OptionalPositions& positions) {
  require_rows(core, coordinates);
  const std::vector<ConformalIntervals::Position> wanted = positions_of(positions);
  std::vector<double> predictions(coordinates.shape(0));
  {
    const nb::gil_scoped_release release;
    core.predict(span_of(coordinates), output_to(predictions, bounds, wanted));
  }
  return to_numpy(std::move(predictions));
}

// Adds the property `calibration` to the class of a core.
template <typename Core>
void bind_calibration(nb::class_<Core>& type) {
  const auto without_gil = nb::call_guard<nb::gil_scoped_release>();
  type.def_prop_rw("calibration", &Core::calibration, &Core::set_calibration, nb::for_getter(without_gil),
                   nb::for_setter(without_gil), "Calibration of prediction intervals.");
}

// Returns a copy that Python owns.
template <typename Core>
Core* copy_core(const Core& core) {
  const nb::gil_scoped_release release;
  return new Core(core);
}

}  // namespace ellipack
