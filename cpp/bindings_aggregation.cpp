// Python bindings of Bernstein online aggregation, recursive least squares and their combination.

#include "aggregation.hpp"
#include "bindings.hpp"
#include "least_squares.hpp"
#include "stacked_aggregation.hpp"

namespace ellipack {

namespace {

BernsteinAggregation make_aggregation(const Vector& log_priors, const Vector& gains, const Vector& squares,
                                      double scale) {
  require_size("gains", gains.size(), log_priors.size());
  require_size("squares", squares.size(), log_priors.size());
  BernsteinAggregation made{vector_of(log_priors), vector_of(gains), vector_of(squares), scale};
  made.check();
  return made;
}

LeastSquares make_least_squares(const Matrix& inverse, const Vector& coefficients) {
  const std::size_t size = coefficients.size();
  require_size("a row of inverse", inverse.shape(1), size);
  LeastSquares made{vector_of(inverse), vector_of(coefficients)};
  made.check();
  return made;
}

FloatArray inverse_of(const LeastSquares& self) {
  return copy_to_numpy<double>(*self.inverse, {self.size(), self.size()});
}

// Functions for tests.

void update(LeastSquares& self, const Vector& features, double target) {
  require_size("features", features.size(), self.size());
  std::vector<double> gain(self.size());
  self.update(span_of(features), target, gain);
}

void discount(LeastSquares& self, double span) {
  require(span > 1.0, "span must be > 1");
  std::vector<double> factors(self.size());
  self.discount(span, factors);
}

}  // namespace

void bind_aggregation(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<BernsteinAggregation>(m, "BernsteinAggregation", "Bernstein online aggregation of experts.")
      .def(nb::new_(&make_aggregation), "log_priors"_a, "gains"_a, "squares"_a, "scale"_a)
      .def_prop_ro(
          "log_priors", [](const BernsteinAggregation& self) { return as_vector(self.log_priors); }, new_array)
      .def_prop_ro(
          "gains", [](const BernsteinAggregation& self) { return as_vector(self.gains); }, new_array)
      .def_prop_ro(
          "squares", [](const BernsteinAggregation& self) { return as_vector(self.squares); }, new_array)
      .def_ro("scale", &BernsteinAggregation::scale)
      .def(
          "weights",
          [](const BernsteinAggregation& self) {
            std::vector<double> weights(self.size());
            self.compute_weights(weights);
            return to_numpy(std::move(weights));
          },
          "Return the weights of the experts, which add up to 1.")
      .def(
          "update",
          [](BernsteinAggregation& self, const Vector& predictions, double prediction, double label) {
            require_size("predictions", predictions.size(), self.size());
            self.update(span_of(predictions), prediction, label);
          },
          "predictions"_a, "prediction"_a, "label"_a,
          "Update by the label of a round in which the experts predicted `predictions` and the aggregation "
          "`prediction`.")
      .def(
          "__reduce__",
          [](const BernsteinAggregation& self) {
            return nb::make_tuple(
                nb::type<BernsteinAggregation>(),
                nb::make_tuple(as_vector(self.log_priors), as_vector(self.gains), as_vector(self.squares), self.scale));
          },
          reduce_signature());
  nb::class_<LeastSquares>(m, "LeastSquares", "Recursive least squares.")
      .def(nb::new_(&make_least_squares), "inverse"_a, "coefficients"_a)
      .def_static(
          "from_low_rank",
          [](const Vector& variances, const Vector& link, const Matrix& rows, const Vector& coefficients) {
            require_width(rows, coefficients.size());
            return LeastSquares::from_low_rank(span_of(variances), span_of(link), span_of(rows),
                                               vector_of(coefficients));
          },
          "variances"_a, "link"_a, "rows"_a, "coefficients"_a,
          "Return the regression whose inverse is `diag(variances) + link link' - rows' rows`.")
      .def_prop_ro("inverse", &inverse_of, new_array)
      .def_prop_ro(
          "coefficients", [](const LeastSquares& self) { return as_vector(self.coefficients); }, new_array)
      .def(
          "convert",
          [](LeastSquares& self, const Vector& ratio, const Vector& shift) {
            require_size("ratio", ratio.size(), self.size());
            require_size("shift", shift.size(), self.size());
            self.convert(span_of(ratio), span_of(shift));
          },
          "ratio"_a, "shift"_a,
          "Convert the regression to rescaled features. The old features are `ratio * new + shift`; the last one is "
          "the constant, with a ratio and a shift of 1.")
      .def("update", &update, "features"_a, "target"_a, "Update the regression by one row.")
      .def("discount", &discount, "span"_a,
           "Discount the past: rows that are `span` rounds old keep the fraction 1/e of their weight.")
      .def(
          "__reduce__",
          [](const LeastSquares& self) {
            return nb::make_tuple(nb::type<LeastSquares>(),
                                  nb::make_tuple(inverse_of(self), as_vector(self.coefficients)));
          },
          reduce_signature());
  nb::class_<StackedAggregation>(m, "StackedAggregation",
                                 "Aggregation of experts, a stack that corrects it, and weights of both.")
      .def(nb::new_([](BernsteinAggregation experts, LeastSquares stack, BernsteinAggregation top) {
             return StackedAggregation{std::move(experts), std::move(stack), std::move(top)};
           }),
           "experts"_a, "stack"_a, "top"_a)
      .def_ro("experts", &StackedAggregation::experts)
      .def_ro("stack", &StackedAggregation::stack)
      .def_ro("top", &StackedAggregation::top)
      .def(
          "__reduce__",
          [](const StackedAggregation& self) {
            return nb::make_tuple(nb::type<StackedAggregation>(), nb::make_tuple(self.experts, self.stack, self.top));
          },
          reduce_signature());
}

}  // namespace ellipack
