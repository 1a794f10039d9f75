// Python bindings of mistake-driven classification.

#include "bindings.hpp"
#include "bindings_rounds.hpp"
#include "checks.hpp"
#include "packing_classifier.hpp"

namespace ellipack {

namespace {

// Restores a core from the centers of all packings, one packing after the other, and the size of each packing.
void restore_classifier(PackingClassifierCore* self, const Matrix& coordinates, const Vector& sums,
                        const IntVector& counts, const IntVector& creation_rounds, const IntVector& sizes,
                        const IntVector& rank_starts, bool ball_clocks) {
  const std::size_t count = coordinates.shape(0);
  const std::size_t width = coordinates.shape(1);
  require_size("label_sums", sums.size(), count);
  require_size("label_counts", counts.size(), count);
  require_size("creation_rounds", creation_rounds.size(), count);
  std::vector<PackingCenters> packings;
  std::size_t first = 0;
  for (const std::int64_t signed_size : span_of(sizes)) {
    require(signed_size >= 0 && static_cast<std::size_t>(signed_size) <= count - first,
            "sizes must add up to the number of centers");
    const auto size = static_cast<std::size_t>(signed_size);
    const auto part = [&](auto values) { return std::vector(values.begin() + first, values.begin() + first + size); };
    packings.emplace_back(span_of(coordinates).subspan(first * width, size * width), width, part(span_of(sums)),
                          part(span_of(counts)), part(span_of(creation_rounds)));
    first += size;
  }
  require(first == count, "sizes must add up to the number of centers");
  new (self) PackingClassifierCore(std::move(packings), vector_of(rank_starts), ball_clocks);
}

template <typename T>
void append(std::vector<T>& all, const std::vector<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

nb::tuple classifier_arrays(const PackingClassifierCore& core) {
  std::vector<double> coordinates;
  std::vector<double> sums;
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> rounds;
  std::vector<std::int64_t> sizes;
  {
    const nb::gil_scoped_release release;  // it may wait for a thread that learns
    for (const PackingCenters& centers : core.packings()) {
      append(coordinates, centers.points.points());
      append(sums, centers.label_sums);
      append(counts, centers.label_counts);
      append(rounds, centers.creation_rounds);
      sizes.push_back(static_cast<std::int64_t>(centers.size()));
    }
  }
  const std::size_t count = sums.size();
  return nb::make_tuple(to_numpy(std::move(coordinates), {count, core.dimension()}), to_numpy(std::move(sums)),
                        to_numpy(std::move(counts)), to_numpy(std::move(rounds)), to_numpy(std::move(sizes)),
                        copy_to_numpy(core.rank_starts(), {core.rank_starts().size()}), core.ball_clocks());
}

FloatArray table_of(const PackingClassifierCore& core, std::vector<double>&& predictions) {
  const std::size_t rows = predictions.size() / core.packing_count();
  return to_numpy(std::move(predictions), {rows, core.packing_count()});
}

FloatArray learn_classes(PackingClassifierCore& core, const Matrix& coordinates, const IntVector& labels) {
  require_rows(core, coordinates);
  require_size("labels", labels.size(), coordinates.shape(0));
  std::vector<double> predictions;
  {
    const nb::gil_scoped_release release;
    predictions = core.learn(span_of(coordinates), span_of(labels));
  }
  return table_of(core, std::move(predictions));
}

FloatArray predict(const PackingClassifierCore& core, const Matrix& coordinates) {
  require_rows(core, coordinates);
  std::vector<double> predictions;
  {
    const nb::gil_scoped_release release;
    predictions = core.predict(span_of(coordinates));
  }
  return table_of(core, std::move(predictions));
}

IntArray mistakes_of(const PackingClassifierCore& core) {
  std::vector<std::int64_t> mistakes;
  {
    const nb::gil_scoped_release release;
    mistakes = core.mistakes();
  }
  return to_numpy(std::move(mistakes));
}

}  // namespace

void bind_packing_classifier(nb::module_& m) {
  constexpr auto owned = nb::rv_policy::take_ownership;
  nb::class_<PackingClassifierCore>(
      m, "PackingClassifierCore",
      "Mistake-driven classification in whitened coordinates. Threads may predict while one learns.")
      .def(
          "__init__",
          [](PackingClassifierCore* self, std::size_t dimension, const IntVector& rank_starts, std::size_t packings,
             bool ball_clocks) {
            require_size("rank_starts", rank_starts.size() + 1, dimension);
            new (self) PackingClassifierCore(dimension, vector_of(rank_starts), packings, ball_clocks);
          },
          nb::arg("dimension"), nb::arg("rank_starts"), nb::arg("packings"), nb::arg("ball_clocks"))
      .def("__init__", &restore_classifier, nb::arg("coordinates"), nb::arg("label_sums"), nb::arg("label_counts"),
           nb::arg("creation_rounds"), nb::arg("sizes"), nb::arg("rank_starts"), nb::arg("ball_clocks"))
      .def("learn", &learn_classes, nb::arg("coordinates"), nb::arg("labels"),
           "Run one round per row, where `labels` holds the packing of the class of each row, or -1. Return the "
           "predictions (row, packing), each made before its label was learned.")
      .def("predict", &predict, nb::arg("coordinates"),
           "Return the predictions (row, packing); 1/2 before the first mistake.")
      .def("copy", &copy_core<PackingClassifierCore>, owned, "Return an independent copy.")
      .def(
          "__deepcopy__", [](const PackingClassifierCore& core, const nb::handle&) { return copy_core(core); }, owned,
          nb::arg("memo"))
      .def("to_arrays", &classifier_arrays,
           nb::sig("def to_arrays(self) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.int64], "
                   "NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.int64], bool]"),
           "Return the arguments of an equal core: coordinates, label_sums, label_counts, creation_rounds, sizes, "
           "rank_starts and ball_clocks.")
      .def(
          "__reduce__",
          [](const PackingClassifierCore& core) {
            return nb::make_tuple(nb::type<PackingClassifierCore>(), classifier_arrays(core));
          },
          reduce_signature())
      .def_prop_ro("mistakes", &mistakes_of, new_array, "Number of mistakes of each packing.")
      .def_prop_ro("packing_count", &PackingClassifierCore::packing_count)
      .def_prop_ro("dimension", &PackingClassifierCore::dimension)
      .def_prop_ro("ball_clocks", &PackingClassifierCore::ball_clocks,
                   "Whether the radius of a ball depends on its own mistakes.");
}

}  // namespace ellipack
