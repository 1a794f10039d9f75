// Python bindings of the state of a learner with a metric: views, centers, experts and statistics.

#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "metric_rounds.hpp"

namespace ellipack {

namespace {

using namespace nb::literals;

FeatureView make_view(const Matrix& knots, const Vector& shift, const Vector& scale, const Matrix& directions,
                      const Matrix& gop, std::size_t fit_dimension, std::size_t max_slopes) {
  const std::size_t d = shift.size();
  require_size("scale", scale.size(), d);
  require_size("directions", directions.shape(0), d);
  if (gop.shape(0) > max_slopes) {
    require_size("gop", gop.shape(0), d);
  }
  if (gop.shape(0) > 0) {
    require_size("a row of gop", gop.shape(1), d);
  }
  if (knots.shape(0) > 0) {
    require_size("a row of knots", knots.shape(1), d);
  }
  FeatureView view{d,
                   directions.shape(1),
                   fit_dimension,
                   vector_of(knots),
                   vector_of(shift),
                   vector_of(scale),
                   vector_of(directions),
                   vector_of(gop),
                   max_slopes};
  view.check();
  return view;
}

FloatArray standardize(const FeatureView& view, const Matrix& rows) {
  require_size("a row", rows.shape(1), view.dimension);
  std::vector<double> out(rows.size());
  {
    const nb::gil_scoped_release release;
    for (std::size_t i = 0; i < rows.shape(0); ++i) {
      view.standardize({rows.data() + i * view.dimension, view.dimension},
                       {out.data() + i * view.dimension, view.dimension});
    }
  }
  return to_numpy(std::move(out), {rows.shape(0), view.dimension});
}

FloatArray convert_gop(const FeatureView& view, const Vector& ratio) {
  require_size("ratio", ratio.size(), view.dimension);
  FloatArray converted = empty_array<double>({view.gop->size() / view.dimension, view.dimension});
  view.convert_gop(span_of(ratio), {converted.data(), converted.size()});
  return converted;
}

void bind_feature_view(nb::module_& m) {
  const auto arrays = [](const FeatureView& self) {
    const std::size_t d = self.dimension;
    return nb::make_tuple(as_matrix(self.knots, d), as_vector(self.shift), as_vector(self.scale),
                          as_matrix(self.directions, self.rank), as_matrix(*self.gop, d), self.fit_dimension,
                          self.max_slopes);
  };
  nb::class_<FeatureView>(m, "FeatureView", "View of the features with a metric.")
      .def(nb::new_(&make_view), "knots"_a, "shift"_a, "scale"_a, "directions"_a, "gop"_a, "fit_dimension"_a,
           "max_slopes"_a = 0)
      .def_prop_ro_static(
          "largest_standard", [](nb::handle) { return largest_standard; }, "Largest standardized feature in size.")
      .def_prop_ro(
          "knots", [](const FeatureView& self) { return as_matrix(self.knots, self.dimension); }, new_array)
      .def_prop_ro(
          "shift", [](const FeatureView& self) { return as_vector(self.shift); }, new_array)
      .def_prop_ro(
          "scale", [](const FeatureView& self) { return as_vector(self.scale); }, new_array)
      .def_prop_ro(
          "directions", [](const FeatureView& self) { return as_matrix(self.directions, self.rank); }, new_array)
      .def_prop_ro(
          "gop", [](const FeatureView& self) { return as_matrix(*self.gop, self.dimension); }, new_array,
          "Sum of outer products of slopes, or at most `max_slopes` slopes, one per row.")
      .def_ro("fit_dimension", &FeatureView::fit_dimension)
      .def_ro("max_slopes", &FeatureView::max_slopes)
      .def("standardize", &standardize, "rows"_a, "Return standardized rows.")
      .def("convert_gop", &convert_gop, "ratio"_a, "Return `gop` in units that are `ratio` times as large.")
      .def(
          "__reduce__",
          [arrays](const FeatureView& self) { return nb::make_tuple(nb::type<FeatureView>(), arrays(self)); },
          reduce_signature());
}

CenterMemory make_centers(const Matrix& rows, const Vector& label_sums, const IntVector& label_counts,
                          const Vector& round_sums, const Vector& error_sums) {
  require_size("label_sums", label_sums.size(), rows.shape(0));
  require_size("label_counts", label_counts.size(), rows.shape(0));
  require_size("round_sums", round_sums.size(), rows.shape(0));
  require_size("error_sums", error_sums.size(), rows.shape(0));
  CenterMemory centers{{span_of(rows), rows.shape(1)},
                       vector_of(label_sums),
                       vector_of(label_counts),
                       vector_of(round_sums),
                       vector_of(error_sums)};
  centers.check();
  return centers;
}

FloatArray rows_of(const CenterMemory& centers) {
  return to_numpy(centers.rows.values(), {centers.size(), centers.dimension()});
}

// Raises ValueError unless all places are those of centers.
void require_places(const IntVector& places, std::size_t size) {
  for (const std::int64_t place : span_of(places)) {
    if (place < 0 || static_cast<std::size_t>(place) >= size) {
      throw std::invalid_argument("places must be from 0 to " + std::to_string(size) + " - 1, got " +
                                  std::to_string(place));
    }
  }
}

CenterMemory replace_centers(const CenterMemory& centers, const IntVector& places, const CenterMemory& others) {
  require_places(places, centers.size());
  require_size("others", others.size(), places.size());
  require_size("a row of others", others.dimension(), centers.dimension());
  CenterMemory replaced = centers;
  replaced.put(span_of(places), others);
  return replaced;
}

CenterMemory append_centers(const CenterMemory& centers, const CenterMemory& others) {
  require_size("a row of others", others.dimension(), centers.dimension());
  CenterMemory more = centers;
  more.append(others);
  return more;
}

FloatArray project_centers(const CenterMemory& centers, const FeatureView& view, const IntVector& places,
                           const Matrix& directions) {
  require_places(places, centers.size());
  require_size("a row of the view", view.dimension, centers.dimension());
  require_size("directions", directions.shape(0), centers.dimension());
  require(directions.shape(1) > 0, "directions must not be empty");
  std::vector<double> out;
  {
    const nb::gil_scoped_release release;
    out = centers.project(view, span_of(places), span_of(directions));
  }
  return to_numpy(std::move(out), {places.size(), directions.shape(1)});
}

CenterIndex make_index(const Sequence<Matrix>& coordinate_arrays) {
  const std::vector<Matrix> coordinates = vector_of(coordinate_arrays);
  const nb::gil_scoped_release release;
  CenterIndex index;
  for (const Matrix& each : coordinates) {
    index.add_view(span_of(each), each.shape(1));
  }
  return index;
}

std::vector<FloatArray> coordinates_of(const CenterIndex& index) {
  std::vector<FloatArray> out;
  for (const CopyOnWrite<KdTree>& tree : index.trees) {
    out.push_back(as_matrix(tree->points(), tree->dimension()));
  }
  return out;
}

std::vector<FloatArray> coordinates_at(const CenterIndex& index, const IntVector& places) {
  std::vector<FloatArray> out;
  for (const CopyOnWrite<KdTree>& tree : index.trees) {
    require_places(places, tree->size());
    out.push_back(as_matrix(tree->points(span_of(places)), tree->dimension()));
  }
  return out;
}

CenterIndex append_to_index(const CenterIndex& index, const Sequence<Matrix>& coordinate_arrays) {
  const std::vector<Matrix> coordinates = vector_of(coordinate_arrays);
  require_size("coordinates", coordinates.size(), index.trees.size());
  const nb::gil_scoped_release release;
  CenterIndex more = index;
  for (std::size_t v = 0; v < coordinates.size(); ++v) {
    require_size("a row of coordinates", coordinates[v].shape(1), index.trees[v]->dimension());
    more.append(v, span_of(coordinates[v]));
  }
  return more;
}

void bind_center_index(nb::module_& m) {
  nb::class_<CenterIndex>(m, "CenterIndex",
                          "Index of centers by their coordinates in each view. Copies share it until one changes.")
      .def(nb::new_(&make_index), "coordinates"_a)
      .def_prop_ro("coordinates", &coordinates_of, new_array, "Coordinates of the centers in each view.")
      .def("take", &coordinates_at, "places"_a, "Return the coordinates of some of the centers in each view.")
      .def("append", &append_to_index, "coordinates"_a, "Return an index with more centers.")
      .def(
          "__reduce__",
          [](const CenterIndex& self) {
            return nb::make_tuple(nb::type<CenterIndex>(), nb::make_tuple(coordinates_of(self)));
          },
          reduce_signature());
}

void bind_centers(nb::module_& m) {
  nb::class_<CenterMemory>(m, "CenterMemory", "Centers, shared by all views.")
      .def(nb::new_(&make_centers), "rows"_a, "label_sums"_a, "label_counts"_a, "round_sums"_a, "error_sums"_a)
      .def_prop_ro(
          "rows", [](const CenterMemory& self) { return rows_of(self); }, new_array)
      .def_prop_ro("dimension", &CenterMemory::dimension, "Number of features.")
      .def_prop_ro(
          "label_sums", [](const CenterMemory& self) { return as_vector(self.label_sums); }, new_array)
      .def_prop_ro(
          "label_counts", [](const CenterMemory& self) { return as_ints(self.label_counts); }, new_array)
      .def_prop_ro(
          "round_sums", [](const CenterMemory& self) { return as_vector(self.round_sums); }, new_array)
      .def_prop_ro(
          "error_sums", [](const CenterMemory& self) { return as_vector(self.error_sums); }, new_array)
      .def("__len__", &CenterMemory::size)
      .def(
          "take",
          [](const CenterMemory& self, const IntVector& places) {
            require_places(places, self.size());
            return self.take(span_of(places));
          },
          "places"_a, "Return some of the centers.")
      .def("project", &project_centers, "view"_a, "places"_a, "directions"_a,
           "Return the products of some of the centers, standardized by a view, and directions.")
      .def("replace", &replace_centers, "places"_a, "others"_a, "Return centers of which some are replaced by others.")
      .def("append", &append_centers, "others"_a, "Return these centers and others.")
      .def(
          "__reduce__",
          [](const CenterMemory& self) {
            return nb::make_tuple(nb::type<CenterMemory>(),
                                  nb::make_tuple(rows_of(self), as_vector(self.label_sums), as_ints(self.label_counts),
                                                 as_vector(self.round_sums), as_vector(self.error_sums)));
          },
          reduce_signature());
}

PackingExpert make_packing(const Matrix& coordinates, const Vector& label_sums, const IntVector& label_counts,
                           const IntVector& creation_rounds, const IntVector& rank_starts, std::int64_t clock,
                           double coordinate_scale, std::size_t max_centers) {
  PackingCenters centers(span_of(coordinates), coordinates.shape(1), vector_of(label_sums), vector_of(label_counts),
                         vector_of(creation_rounds));
  PackingExpert packing{std::move(centers), vector_of(rank_starts), clock, coordinate_scale, max_centers};
  packing.check();
  return packing;
}

void bind_packing_expert(nb::module_& m) {
  const auto coordinates = [](const PackingExpert& self) {
    return as_matrix(self.centers.points.points(), self.centers.points.dimension());
  };
  nb::class_<PackingExpert>(m, "PackingExpert", "State of Algorithm 1 as an expert.")
      .def(nb::new_(&make_packing), "coordinates"_a, "label_sums"_a, "label_counts"_a, "creation_rounds"_a,
           "rank_starts"_a, "clock"_a, "coordinate_scale"_a, "max_centers"_a)
      .def_prop_ro("coordinates", coordinates, new_array)
      .def_prop_ro(
          "label_sums", [](const PackingExpert& self) { return as_vector(self.centers.label_sums); }, new_array)
      .def_prop_ro(
          "label_counts", [](const PackingExpert& self) { return as_ints(self.centers.label_counts); }, new_array)
      .def_prop_ro(
          "creation_rounds", [](const PackingExpert& self) { return as_ints(self.centers.creation_rounds); }, new_array)
      .def_prop_ro(
          "rank_starts", [](const PackingExpert& self) { return as_ints(self.rank_starts); }, new_array)
      .def_ro("clock", &PackingExpert::clock)
      .def_ro("coordinate_scale", &PackingExpert::coordinate_scale)
      .def_ro("max_centers", &PackingExpert::max_centers)
      .def(
          "at_round",
          [](const PackingExpert& self, std::int64_t clock) {
            PackingExpert later = self;
            later.clock = clock;
            later.check();
            return later;
          },
          "clock"_a, "Return the same state in another round.")
      .def(
          "__reduce__",
          [coordinates](const PackingExpert& self) {
            return nb::make_tuple(
                nb::type<PackingExpert>(),
                nb::make_tuple(coordinates(self), as_vector(self.centers.label_sums),
                               as_ints(self.centers.label_counts), as_ints(self.centers.creation_rounds),
                               as_ints(self.rank_starts), self.clock, self.coordinate_scale, self.max_centers));
          },
          reduce_signature());
}

// In Python, statistics are arrays: mean, sum of squared deviations, low, high, outliers, and for labels also the
// count.
LabelStatistics make_label_statistics(const Vector& values) {
  require_size("label_statistics", values.size(), 6);
  const double* v = values.data();
  return {v[0], v[1], v[2], v[3], v[4], v[5]};
}

FloatArray label_statistics(const MetricParts& parts) {
  const LabelStatistics& labels = parts.labels;
  return as_vector({labels.mean, labels.squares, labels.low, labels.high, labels.outliers, labels.count});
}

FeatureStatistics make_feature_statistics(const Matrix& values) {
  require_size("feature_statistics", values.shape(0), 5);
  const std::size_t d = values.shape(1);
  FeatureStatistics out(d);
  std::size_t row = 0;
  for (std::vector<double>* each : {&out.mean, &out.squares, &out.low, &out.high, &out.outliers}) {
    each->assign(values.data() + row * d, values.data() + (row + 1) * d);
    ++row;
  }
  return out;
}

FloatArray feature_statistics(const MetricParts& parts) {
  const FeatureStatistics& features = parts.features;
  std::vector<double> values;
  for (const std::vector<double>* each :
       {&features.mean, &features.squares, &features.low, &features.high, &features.outliers}) {
    values.insert(values.end(), each->begin(), each->end());
  }
  return as_matrix(values, features.mean.size());
}

MetricParts make_parts(const Sequence<FeatureView>& views, CenterMemory centers, PackingExpert packing,
                       GlobalRegressions regressions, StackedAggregation aggregation, const Vector& labels,
                       const Matrix& features, const ConformalIntervals& intervals, CenterIndex index,
                       std::int64_t clock) {
  MetricParts parts{vector_of(views),
                    std::move(centers),
                    std::move(index),
                    std::move(packing),
                    std::move(regressions),
                    std::move(aggregation),
                    make_label_statistics(labels),
                    make_feature_statistics(features),
                    intervals,
                    clock};
  parts.check();
  return parts;
}

void bind_parts(nb::module_& m) {
  nb::class_<GlobalRegressions>(m, "GlobalRegressions",
                                "Ridge regressions on all features, without and with forgetting.")
      .def(nb::new_([](LeastSquares ridge, LeastSquares forgetting) {
             return GlobalRegressions{std::move(ridge), std::move(forgetting)};
           }),
           "ridge"_a, "forgetting"_a)
      .def_ro("ridge", &GlobalRegressions::ridge)
      .def_ro("forgetting", &GlobalRegressions::forgetting)
      .def(
          "__reduce__",
          [](const GlobalRegressions& self) {
            return nb::make_tuple(nb::type<GlobalRegressions>(), nb::make_tuple(self.ridge, self.forgetting));
          },
          reduce_signature());
  nb::class_<MetricParts>(m, "MetricParts", "State of a learner with a metric.")
      .def(nb::new_(&make_parts), "views"_a, "centers"_a, "packing"_a, "regressions"_a, "aggregation"_a,
           "label_statistics"_a, "feature_statistics"_a, "intervals"_a, "index"_a, "clock"_a)
      .def_ro("views", &MetricParts::views)
      .def_ro("centers", &MetricParts::centers)
      .def_ro("packing", &MetricParts::packing)
      .def_ro("regressions", &MetricParts::regressions)
      .def_ro("aggregation", &MetricParts::aggregation)
      .def_prop_ro("label_statistics", &label_statistics, new_array)
      .def_prop_ro("feature_statistics", &feature_statistics, new_array)
      .def_ro("intervals", &MetricParts::intervals)
      .def_ro("clock", &MetricParts::clock)
      .def_ro("index", &MetricParts::index)
      .def(
          "__reduce__",
          [](const MetricParts& self) {
            return nb::make_tuple(nb::type<MetricParts>(),
                                  nb::make_tuple(self.views, self.centers, self.packing, self.regressions,
                                                 self.aggregation, label_statistics(self), feature_statistics(self),
                                                 self.intervals, self.index, self.clock));
          },
          reduce_signature());
}

}  // namespace

void bind_metric_parts(nb::module_& m) {
  bind_feature_view(m);
  bind_centers(m);
  bind_center_index(m);
  bind_packing_expert(m);
  bind_parts(m);
}

}  // namespace ellipack
