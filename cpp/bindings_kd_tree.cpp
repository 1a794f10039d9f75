// Python bindings of the kd-tree. Each call processes several rows and checks them first.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "bindings.hpp"
#include "eviction.hpp"
#include "fork_gate.hpp"
#include "kd_tree.hpp"

namespace ellipack {

namespace {

using namespace nb::literals;

using Found = std::pair<IntArray, FloatArray>;  // positions and squared distances
using FoundWithin = std::tuple<IntArray, IntArray, FloatArray>;
using PositionArray = NumpyArray<std::int32_t>;

std::span<const double> row_of(const Matrix& rows, std::size_t row) {
  return span_of(rows).subspan(row * rows.shape(1), rows.shape(1));
}

void require_rows(const char* name, const Matrix& rows, const KdTree& tree) {
  if (rows.shape(1) != tree.dimension()) {
    throw std::invalid_argument(std::string(name) + " must have " + std::to_string(tree.dimension()) +
                                " columns, got " + std::to_string(rows.shape(1)));
  }
  require_finite(name, rows);
}

KdTree build(const Matrix& points) {
  require_finite("points", points);
  return {span_of(points), points.shape(1)};
}

void insert(KdTree& tree, const Matrix& points) {
  require_rows("points", points, tree);
  fork_gate.enter();
  const auto leave = [](ForkGate* gate) { gate->leave(); };
  const std::unique_ptr<ForkGate, decltype(leave)> pass(&fork_gate, leave);
  for (std::size_t row = 0; row < points.shape(0); ++row) {
    tree.insert(row_of(points, row));
  }
}

Found nearest(const KdTree& tree, const Matrix& queries) {
  const std::size_t count = queries.shape(0);
  std::vector<std::int64_t> positions(count);
  std::vector<double> distances(count);
  {
    const nb::gil_scoped_release released;
    require_rows("queries", queries, tree);
    for (std::size_t row = 0; row < count; ++row) {
      const Neighbor found = tree.nearest(row_of(queries, row));
      positions[row] = found.position;
      distances[row] = found.squared_distance;
    }
  }
  return {to_numpy(std::move(positions)), to_numpy(std::move(distances))};
}

Found k_nearest(const KdTree& tree, const Matrix& queries, std::size_t k) {
  const std::size_t count = queries.shape(0);
  constexpr std::size_t most = std::numeric_limits<std::int32_t>::max();
  if (k == 0 || k > most) {
    throw std::invalid_argument("k must be from 1 to 2^31 - 1, got " + std::to_string(k));
  }
  std::vector<std::int64_t> positions;
  std::vector<double> distances;
  {
    const nb::gil_scoped_release released;
    require_rows("queries", queries, tree);
    positions.resize(count * k, -1);
    distances.resize(count * k, std::numeric_limits<double>::infinity());
    std::vector<Neighbor> found(std::min(k, tree.size()));
    for (std::size_t row = 0; row < count; ++row) {
      tree.k_nearest(row_of(queries, row), std::numeric_limits<double>::infinity(), found);
      for (std::size_t i = 0; i < found.size(); ++i) {
        positions[row * k + i] = found[i].position;
        distances[row * k + i] = found[i].squared_distance;
      }
    }
  }
  return {to_numpy(std::move(positions), {count, k}), to_numpy(std::move(distances), {count, k})};
}

FoundWithin within(const KdTree& tree, const Matrix& queries, double radius_squared) {
  if (!(radius_squared >= 0.0)) {
    throw std::invalid_argument("radius_squared must be >= 0, got " + std::to_string(radius_squared));
  }
  std::vector<std::int64_t> offsets = {0};
  std::vector<std::int64_t> positions;
  std::vector<double> distances;
  {
    const nb::gil_scoped_release released;
    require_rows("queries", queries, tree);
    for (std::size_t row = 0; row < queries.shape(0); ++row) {
      for (const Neighbor& neighbor : tree.within(row_of(queries, row), radius_squared)) {
        positions.push_back(neighbor.position);
        distances.push_back(neighbor.squared_distance);
      }
      offsets.push_back(static_cast<std::int64_t>(positions.size()));
    }
  }
  return {to_numpy(std::move(offsets)), to_numpy(std::move(positions)), to_numpy(std::move(distances))};
}

FloatArray points(const KdTree& tree) {
  std::vector<double> rows;
  {
    const nb::gil_scoped_release released;
    rows = tree.points();
  }
  return to_numpy(std::move(rows), {tree.size(), tree.dimension()});
}

Found nearest_later_in_leaf(const KdTree& tree, const Matrix& points) {
  if (points.shape(0) != tree.size()) {
    throw std::invalid_argument("points must have " + std::to_string(tree.size()) + " rows, got " +
                                std::to_string(points.shape(0)));
  }
  LaterNeighbors found;
  {
    const nb::gil_scoped_release released;
    require_finite("points", points);
    found = nearest_later_in_leaf(tree, span_of(points), points.shape(1));
  }
  return {to_numpy(std::move(found.positions)), to_numpy(std::move(found.squared_distances))};
}

// Functions for tests.

std::span<const double> checked_query(const KdTree& tree, const Vector& query) {
  require_size("query", query.size(), tree.dimension());
  return span_of(query);
}

std::size_t checked_leaf(const KdTree& tree, std::size_t leaf) {
  if (leaf >= tree.leaf_count()) {
    throw std::out_of_range("leaf must be < " + std::to_string(tree.leaf_count()) + ", got " + std::to_string(leaf));
  }
  return leaf;
}

PositionArray leaf_positions(const KdTree& tree, std::size_t leaf) {
  const std::span<const std::int32_t> positions = tree.leaf_positions(checked_leaf(tree, leaf));
  return copy_to_numpy(positions, {positions.size()});
}

PositionArray near_leaves(const KdTree& tree, const Vector& query, double limit) {
  return to_numpy(tree.near_leaves(checked_query(tree, query), limit));
}

PositionArray near_in_leaf(const KdTree& tree, std::size_t leaf, const Vector& query, double limit) {
  return to_numpy(tree.near_in_leaf(checked_leaf(tree, leaf), checked_query(tree, query), limit));
}

}  // namespace

void bind_kd_tree(nb::module_& m) {
  using ReleaseGil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<KdTree>(m, "KdTree", "Exact nearest neighbor index: a kd-tree over points with float64 coordinates.")
      .def(nb::init<std::size_t>(), "dimension"_a, "Create a tree without points.")
      .def_static("build", &build, "points"_a, ReleaseGil(), "Build a balanced tree over points, one per row.")
      .def("insert", &insert, "points"_a, ReleaseGil(), "Insert points, one per row, at the next positions.")
      .def(
          "copy", [](const KdTree& tree) { return KdTree(tree); }, ReleaseGil(), "Return an independent copy.")
      .def("points", &points, "Return the coordinates of all points, one per row, in the order of insertion.")
      .def("__len__", &KdTree::size)
      .def_prop_ro("dimension", &KdTree::dimension, "Number of coordinates.")
      .def_prop_ro("memory_bytes", &KdTree::memory_bytes, "Memory of all arrays in bytes, including reserved memory.")
      .def_prop_ro("leaf_count", &KdTree::leaf_count, "Number of leaves.")
      .def_prop_ro("depth", &KdTree::depth, "Number of splits above the deepest leaf.")
      .def("nearest", &nearest, "queries"_a, "Return positions and squared distances of the nearest points.")
      .def("k_nearest", &k_nearest, "queries"_a, "k"_a,
           "Return sorted positions and squared distances of the k nearest points, padded with -1 and inf.")
      .def("within", &within, "queries"_a, "radius_squared"_a,
           "Return offsets, positions and squared distances of all points within a radius, sorted for each query.")
      .def("nearest_later_in_leaf", nb::overload_cast<const KdTree&, const Matrix&>(&nearest_later_in_leaf), "points"_a,
           "Return positions and squared distances of the nearest later point in the same leaf, -1 and inf if none.")
      .def("leaf_positions", &leaf_positions, "leaf"_a, "Return the positions of the points in a leaf.")
      .def("near_leaves", &near_leaves, "query"_a, "radius_squared"_a,
           "Return the leaves that pass the filter of boxes.")
      .def("near_in_leaf", &near_in_leaf, "leaf"_a, "query"_a, "radius_squared"_a,
           "Return the positions of the points in a leaf that pass the filter of codes.")
      .def("check", &KdTree::check, "Raise RuntimeError unless all invariants of the tree hold.");
}

}  // namespace ellipack
