import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.errors import DomainError, ShapeError
from ellipack.synthetic import LowRankStream
from ellipack.validation import UNIT_SLACK
from tests.strategies import seeds


@st.composite
def streams(draw: st.DrawFn) -> LowRankStream:
    d = draw(st.integers(1, 25))
    return LowRankStream(d, draw(st.integers(1, d)), draw(st.floats(0, 0.25)), draw(seeds))


@given(streams(), st.integers(1, 300))
def test_instances_are_in_the_unit_ball_and_labels_in_the_unit_interval(stream: LowRankStream, n: int) -> None:
    X, y = stream.draw(n)
    assert X.shape == (n, stream.d)
    assert y.shape == (n,)
    assert np.linalg.norm(X, axis=1).max() <= 1 + UNIT_SLACK
    assert y.min() >= 0
    assert y.max() <= 1


@given(streams(), st.integers(1, 50), st.integers(1, 50))
def test_same_seed_gives_the_same_stream_and_prefixes(stream: LowRankStream, n: int, more: int) -> None:
    again = LowRankStream(stream.d, stream.rank, stream.noise, stream.random_state)
    X, y = stream.draw(n)
    longer, labels = again.draw(n + more)
    np.testing.assert_array_equal(X, longer[:n])
    np.testing.assert_array_equal(y, labels[:n])
    np.testing.assert_array_equal(stream.subspace, again.subspace)


@given(streams(), st.integers(1, 40), st.integers(1, 5))
def test_chunks_equal_one_draw(stream: LowRankStream, size: int, count: int) -> None:
    parts = list(itertools.islice(stream.chunks(size), count))
    X, y = stream.draw(size * count)
    np.testing.assert_array_equal(np.concatenate([rows for rows, _ in parts]), X)
    np.testing.assert_array_equal(np.concatenate([labels for _, labels in parts]), y)


def test_another_seed_gives_another_stream() -> None:
    one, other = LowRankStream(random_state=1), LowRankStream(random_state=2)
    assert not np.allclose(one.subspace, other.subspace)
    assert not np.allclose(one.draw(5)[0], other.draw(5)[0])


@given(streams())
def test_subspace_is_orthonormal(stream: LowRankStream) -> None:
    assert stream.subspace.shape == (stream.d, stream.rank)
    np.testing.assert_allclose(stream.subspace.T @ stream.subspace, np.eye(stream.rank), atol=1e-12)


@given(streams())
def test_gradients_match_finite_differences(stream: LowRankStream) -> None:
    X, _ = stream.draw(3)
    step = 1e-5
    numeric = [(stream.function(X + step * e) - stream.function(X - step * e)) / (2 * step) for e in np.eye(stream.d)]
    np.testing.assert_allclose(stream.gradients(X), np.transpose(numeric), atol=1e-7)


@given(streams())
def test_function_depends_on_the_subspace_only(stream: LowRankStream) -> None:
    X, _ = stream.draw(5)
    along = X @ stream.subspace @ stream.subspace.T
    np.testing.assert_allclose(stream.function(along), stream.function(X), atol=1e-12)


@given(streams())
def test_range_of_the_gop_is_the_subspace(stream: LowRankStream) -> None:
    gop = stream.gop()
    np.testing.assert_array_equal(gop, gop.T)
    inside = stream.subspace.T @ gop @ stream.subspace
    np.testing.assert_allclose(stream.subspace @ inside @ stream.subspace.T, gop, atol=1e-12)
    assert np.linalg.eigvalsh(inside).min() > 1e-4 * np.linalg.eigvalsh(inside).max()


@pytest.mark.parametrize(("d", "rank"), [(1, 1), (4, 3), (20, 2)])
def test_gop_is_the_mean_outer_product_of_gradients(d: int, rank: int) -> None:
    stream = LowRankStream(d, rank)
    gradients = stream.gradients(stream.draw(200_000)[0])
    gop = stream.gop()
    np.testing.assert_allclose(gradients.T @ gradients / len(gradients), gop, atol=0.01 * float(np.trace(gop)))


def test_noise_has_the_given_standard_deviation_and_mean_zero() -> None:
    stream = LowRankStream(noise=0.05)
    X, y = stream.draw(50_000)
    noise = y - stream.function(X)
    assert abs(noise.std() - 0.05) < 0.001
    assert abs(noise.mean()) < 0.001


def test_instances_are_uniform_in_the_ball() -> None:
    X, _ = LowRankStream(d=3).draw(50_000)
    # Half of the instances must be in the concentric ball of half the volume.
    assert abs(np.mean(np.linalg.norm(X, axis=1) < 0.5 ** (1 / 3)) - 0.5) < 0.01
    assert np.abs(X.mean(axis=0)).max() < 0.01


def test_function_is_neither_linear_nor_symmetric() -> None:
    stream = LowRankStream()
    X, _ = stream.draw(4000)
    centred = stream.function(X) - stream.function(X).mean()
    mirrored = stream.function(-X) - stream.function(-X).mean()
    design = np.column_stack([np.ones(len(X)), X])
    residual = centred - design @ np.linalg.lstsq(design, centred, rcond=None)[0]
    assert residual.std() > 0.2 * centred.std()
    assert abs(np.corrcoef(centred, mirrored)[0, 1]) < 0.95


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"d": 0}, "d must be an integer >= 1, got 0"),
        ({"rank": 0}, "rank must be an integer >= 1, got 0"),
        ({"d": 3, "rank": 4}, "rank must be at most d, 3, got 4"),
        ({"noise": -0.1}, "noise must be from 0 to 0.25, got -0.1"),
        ({"random_state": -1}, "random_state must be an integer >= 0, got -1"),
    ],
)
def test_invalid_parameters_raise(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(DomainError, match=message):
        LowRankStream(**arguments)


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ShapeError, match="X must have 20 columns, got 2"):
        LowRankStream().gradients([[0.0, 0.0]])
    with pytest.raises(DomainError, match="n must be an integer >= 1, got 0"):
        LowRankStream().draw(0)
    with pytest.raises(DomainError, match="size must be an integer >= 1, got 0"):
        LowRankStream().chunks(0)
