// Python bindings of projections and gradient estimators.

#include <nanobind/stl/pair.h>

#include "bindings.hpp"
#include "gradients.hpp"
#include "projection.hpp"
#include "shared_kd_tree.hpp"

namespace ellipack {

namespace {

using BoolArray = nb::ndarray<nb::numpy, bool>;

FloatArray project(const Matrix& rows, const Matrix& directions) {
  const std::size_t depth = directions.shape(0);
  const std::size_t width = directions.shape(1);
  require_size("rows", rows.size(), rows.shape(0) * depth);
  FloatArray out = empty_array<double>({rows.shape(0), width});
  {
    const nb::gil_scoped_release release;
    project_rows(span_of(rows), span_of(directions), width, {out.data(), out.size()});
  }
  return out;
}

BoolArray to_bools(std::vector<std::uint8_t>&& values, std::size_t rows, std::size_t columns) {
  const auto bytes = to_numpy(std::move(values), {rows, columns});
  return nb::cast<BoolArray>(nb::cast(bytes).attr("view")("bool"));
}

std::pair<FloatArray, BoolArray> difference_gradients(const DifferenceEstimator& estimator, const Matrix& anchors) {
  require_size("anchors", anchors.size(), anchors.shape(0) * estimator.dimension());
  require_finite("anchors", anchors);
  DifferenceGradients out;
  {
    const nb::gil_scoped_release release;
    out = estimator.gradients(span_of(anchors));
  }
  return {to_numpy(std::move(out.gradients), {anchors.shape(0), anchors.shape(1)}),
          to_bools(std::move(out.enough_mass), anchors.shape(0), anchors.shape(1))};
}

FloatArray slopes(const SharedKdTree& tree, const Vector& labels, const Matrix& queries, std::size_t neighbors,
                  double ridge) {
  require_size("queries", queries.size(), queries.shape(0) * tree.dimension());
  require_finite("queries", queries);
  std::vector<double> out;
  {
    const nb::gil_scoped_release release;
    out = tree.inspect([&](const KdTree& shared) {
      require_size("labels", labels.size(), shared.size());
      return local_slopes(shared, span_of(labels), span_of(queries), neighbors, ridge);
    });
  }
  return to_numpy(std::move(out), {queries.shape(0), queries.shape(1)});
}

}  // namespace

void bind_gradients(nb::module_& m) {
  m.def("project", &project, nb::arg("rows"), nb::arg("directions"),
        "Return rows @ directions. The order of each sum is fixed, so that results do not depend on batches.");
  nb::class_<DifferenceEstimator>(m, "DifferenceEstimator",
                                  "Gradient estimator of appendix A: central differences of a kernel regression.")
      .def(
          "__init__",
          [](DifferenceEstimator* self, const Matrix& rows, const Vector& labels,
             const std::pair<double, double>& bandwidth_and_step, double mass_threshold,
             const std::pair<int, int>& powers) {
            require_size("labels", labels.size(), rows.shape(0));
            require_finite("rows", rows);
            const auto [bandwidth, step] = bandwidth_and_step;
            const DifferenceSettings settings{bandwidth, step, mass_threshold, powers.first, powers.second};
            new (self) DifferenceEstimator(span_of(rows), span_of(labels), settings);
          },
          nb::arg("rows"), nb::arg("labels"), nb::arg("bandwidth_and_step"), nb::arg("mass_threshold"),
          nb::arg("powers"))
      .def(
          "build_index", &DifferenceEstimator::build_index, nb::call_guard<nb::gil_scoped_release>(),
          "Build a kd-tree, so that each anchor visits only rows in the support of its kernels. Results do not change.")
      .def("gradients", &difference_gradients, nb::arg("anchors"),
           "Return the gradient at each anchor, and for each entry whether both shifted balls contain enough rows.");
  m.def("local_slopes", &slopes, nb::arg("tree"), nb::arg("labels"), nb::arg("queries"), nb::arg("neighbors"),
        nb::arg("ridge"), "Return the slope of a weighted ridge regression on the nearest points of each query.");
}

}  // namespace ellipack
