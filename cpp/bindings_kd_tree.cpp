// Python bindings of the kd-tree. Each call processes several rows and checks them first.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <limits>

#include "bindings.hpp"
#include "eviction.hpp"
#include "shared_kd_tree.hpp"

namespace ellipack {

namespace {

using namespace nb::literals;

using Found = std::pair<IntArray, FloatArray>;  // positions and squared distances
using FoundWithin = std::tuple<IntArray, IntArray, FloatArray>;
using PositionArray = NumpyArray<std::int32_t>;

std::span<const double> row_of(const Matrix& rows, std::size_t row) {
  return span_of(rows).subspan(row * rows.shape(1), rows.shape(1));
}

void require_rows(const char* name, const Matrix& rows, const SharedKdTree& tree) {
  if (rows.shape(1) != tree.dimension()) {
    throw std::invalid_argument(std::string(name) + " must have " + std::to_string(tree.dimension()) +
                                " columns, got " + std::to_string(rows.shape(1)));
  }
  require_finite(name, rows);
}

SharedKdTree* build(const Matrix& points) {
  require_finite("points", points);
  return new SharedKdTree(KdTree(span_of(points), points.shape(1)));
}

SharedKdTree* copy(const SharedKdTree& tree) {
  return new SharedKdTree(tree.inspect([](const KdTree& shared) { return shared; }));
}

void insert(SharedKdTree& tree, const Matrix& points) {
  require_rows("points", points, tree);
  tree.change([&](KdTree& shared) {
    for (std::size_t row = 0; row < points.shape(0); ++row) {
      shared.insert(row_of(points, row));
    }
  });
}

// Functions that return arrays make them after they have released the lock of the tree: they wait for the lock without
// the interpreter's, and for the interpreter's without the lock.

Found nearest(const SharedKdTree& tree, const Matrix& queries) {
  const std::size_t count = queries.shape(0);
  std::vector<std::int64_t> positions(count);
  std::vector<double> distances(count);
  {
    const nb::gil_scoped_release released;
    require_rows("queries", queries, tree);
    tree.inspect([&](const KdTree& shared) {
      for (std::size_t row = 0; row < count; ++row) {
        const Neighbor found = shared.nearest(row_of(queries, row));
        positions[row] = found.position;
        distances[row] = found.squared_distance;
      }
    });
  }
  return {to_numpy(std::move(positions)), to_numpy(std::move(distances))};
}

Found k_nearest(const SharedKdTree& tree, const Matrix& queries, std::size_t k) {
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
    tree.inspect([&](const KdTree& shared) {
      std::vector<Neighbor> found(std::min(k, shared.size()));
      for (std::size_t row = 0; row < count; ++row) {
        shared.k_nearest(row_of(queries, row), std::numeric_limits<double>::infinity(), found);
        for (std::size_t i = 0; i < found.size(); ++i) {
          positions[row * k + i] = found[i].position;
          distances[row * k + i] = found[i].squared_distance;
        }
      }
    });
  }
  return {to_numpy(std::move(positions), {count, k}), to_numpy(std::move(distances), {count, k})};
}

FoundWithin within(const SharedKdTree& tree, const Matrix& queries, double radius_squared) {
  if (!(radius_squared >= 0.0)) {
    throw std::invalid_argument("radius_squared must be >= 0, got " + std::to_string(radius_squared));
  }
  std::vector<std::int64_t> offsets = {0};
  std::vector<std::int64_t> positions;
  std::vector<double> distances;
  {
    const nb::gil_scoped_release released;
    require_rows("queries", queries, tree);
    tree.inspect([&](const KdTree& shared) {
      for (std::size_t row = 0; row < queries.shape(0); ++row) {
        for (const Neighbor& neighbor : shared.within(row_of(queries, row), radius_squared)) {
          positions.push_back(neighbor.position);
          distances.push_back(neighbor.squared_distance);
        }
        offsets.push_back(static_cast<std::int64_t>(positions.size()));
      }
    });
  }
  return {to_numpy(std::move(offsets)), to_numpy(std::move(positions)), to_numpy(std::move(distances))};
}

FloatArray points(const SharedKdTree& tree) {
  std::vector<double> rows;
  {
    const nb::gil_scoped_release released;
    rows = tree.inspect([](const KdTree& shared) { return shared.points(); });
  }
  const std::size_t count = rows.size() / tree.dimension();
  return to_numpy(std::move(rows), {count, tree.dimension()});
}

Found nearest_later_in_leaf(const SharedKdTree& tree, const Matrix& points) {
  LaterNeighbors found;
  {
    const nb::gil_scoped_release released;
    require_finite("points", points);
    found = tree.inspect([&](const KdTree& shared) {
      if (points.shape(0) != shared.size()) {
        throw std::invalid_argument("points must have " + std::to_string(shared.size()) + " rows, got " +
                                    std::to_string(points.shape(0)));
      }
      return nearest_later_in_leaf(shared, span_of(points), points.shape(1));
    });
  }
  return {to_numpy(std::move(found.positions)), to_numpy(std::move(found.squared_distances))};
}

// A number of a tree, as a function that waits for insertions without the interpreter's lock.
template <std::size_t (KdTree::*Number)() const>
std::size_t number_of(const SharedKdTree& tree) {
  const nb::gil_scoped_release released;
  return tree.inspect([](const KdTree& shared) { return (shared.*Number)(); });
}

// Functions for tests.

std::size_t checked_leaf(const KdTree& tree, std::size_t leaf) {
  if (leaf >= tree.leaf_count()) {
    throw std::out_of_range("leaf must be < " + std::to_string(tree.leaf_count()) + ", got " + std::to_string(leaf));
  }
  return leaf;
}

// Returns the positions or leaves that a function of the tree returns.
template <typename Function>
PositionArray positions_by(const SharedKdTree& tree, Function function) {
  std::vector<std::int32_t> found;
  {
    const nb::gil_scoped_release released;
    found = tree.inspect(function);
  }
  return to_numpy(std::move(found));
}

PositionArray leaf_positions(const SharedKdTree& tree, std::size_t leaf) {
  return positions_by(tree, [&](const KdTree& shared) {
    const std::span<const std::int32_t> positions = shared.leaf_positions(checked_leaf(shared, leaf));
    return std::vector<std::int32_t>(positions.begin(), positions.end());
  });
}

PositionArray near_leaves(const SharedKdTree& tree, const Vector& query, double limit) {
  require_size("query", query.size(), tree.dimension());
  return positions_by(tree, [&](const KdTree& shared) { return shared.near_leaves(span_of(query), limit); });
}

PositionArray near_in_leaf(const SharedKdTree& tree, std::size_t leaf, const Vector& query, double limit) {
  require_size("query", query.size(), tree.dimension());
  return positions_by(tree, [&](const KdTree& shared) {
    return shared.near_in_leaf(checked_leaf(shared, leaf), span_of(query), limit);
  });
}

void check(const SharedKdTree& tree) {
  tree.inspect([](const KdTree& shared) { shared.check(); });
}

}  // namespace

void bind_kd_tree(nb::module_& m) {
  using ReleaseGil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<SharedKdTree>(m, "KdTree", "Exact nearest neighbor index: a kd-tree over points with float64 coordinates.")
      .def(nb::init<std::size_t>(), "dimension"_a, "Create a tree without points.")
      .def_static("build", &build, "points"_a, ReleaseGil(), "Build a balanced tree over points, one per row.")
      .def("insert", &insert, "points"_a, ReleaseGil(), "Insert points, one per row, at the next positions.")
      .def("copy", &copy, ReleaseGil(), "Return an independent copy.")
      .def("points", &points, "Return the coordinates of all points, one per row, in the order of insertion.")
      .def("__len__", &number_of<&KdTree::size>)
      .def_prop_ro("dimension", &SharedKdTree::dimension, "Number of coordinates.")
      .def_prop_ro("memory_bytes", &number_of<&KdTree::memory_bytes>,
                   "Memory of all arrays in bytes, including reserved memory.")
      .def_prop_ro("leaf_count", &number_of<&KdTree::leaf_count>, "Number of leaves.")
      .def_prop_ro("depth", &number_of<&KdTree::depth>, "Number of splits above the deepest leaf.")
      .def("nearest", &nearest, "queries"_a, "Return positions and squared distances of the nearest points.")
      .def("k_nearest", &k_nearest, "queries"_a, "k"_a,
           "Return sorted positions and squared distances of the k nearest points, padded with -1 and inf.")
      .def("within", &within, "queries"_a, "radius_squared"_a,
           "Return offsets, positions and squared distances of all points within a radius, sorted for each query.")
      .def("nearest_later_in_leaf", nb::overload_cast<const SharedKdTree&, const Matrix&>(&nearest_later_in_leaf),
           "points"_a,
           "Return positions and squared distances of the nearest later point in the same leaf, -1 and inf if none.")
      .def("leaf_positions", &leaf_positions, "leaf"_a, "Return the positions of the points in a leaf.")
      .def("near_leaves", &near_leaves, "query"_a, "radius_squared"_a,
           "Return the leaves that pass the filter of boxes.")
      .def("near_in_leaf", &near_in_leaf, "leaf"_a, "query"_a, "radius_squared"_a,
           "Return the positions of the points in a leaf that pass the filter of codes.")
      .def("check", &check, ReleaseGil(), "Raise RuntimeError unless all invariants of the tree hold.");
}

}  // namespace ellipack
