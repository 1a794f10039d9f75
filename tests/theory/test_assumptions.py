import numpy as np
import pytest

from ellipack.errors import DomainError, ShapeError
from ellipack.synthetic import LowRankStream
from ellipack.theory import examine_assumption_1, mass_constant
from ellipack.validation import Floats
from tests.strategies import ball


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_stream_of_ours_satisfies_assumption_1(d: int) -> None:
    stream = LowRankStream(d, rank=1)
    X, _ = stream.draw(2000)
    found = examine_assumption_1(X, stream.function, stream.gradients, tau=0.1)
    assert found.derivative_error < 1e-6
    # The gradient is largest where the cosine is 1.
    largest = np.linalg.norm(stream.gradients(np.linspace(-1, 1, 2001)[:, None] * stream.subspace.T), axis=1).max()
    assert found.gradient_bound <= largest * (1 + 1e-4)
    # Uniform in the ball: the constant is 2**-d, at the boundary and the largest radius.
    assert found.mass_constant >= 0.6 * 2.0**-d


def test_a_kink_is_found() -> None:
    X = ball(np.random.default_rng(0), 5000, 2)
    X[0] = 1e-5, 0.3

    def distance(rows: Floats) -> Floats:
        return np.asarray(np.abs(rows[:, 0]))

    def slopes(rows: Floats) -> Floats:
        return np.column_stack([np.sign(rows[:, 0]), np.zeros(len(rows))])

    assert examine_assumption_1(X, distance, slopes, tau=0.1).derivative_error > 0.5
    assert examine_assumption_1(X[1:], lambda rows: rows[:, 0] ** 2, lambda rows: 2 * rows * [1, 0], tau=0.1)[0] < 1e-6


def test_wrong_gradients_are_found() -> None:
    X = ball(np.random.default_rng(0), 100, 2)
    wrong = examine_assumption_1(X, lambda rows: rows[:, 0] ** 2, lambda rows: rows * [1, 0], tau=0.1)
    assert wrong.derivative_error > 0.5


def test_gradients_are_examined_beyond_the_sample() -> None:
    # f = x**3 / 3 has the slope x**2, which is 1 in the sample and 2.25 in the sample blown up by 1/2.
    X = np.linspace(-1, 1, 101)[:, None]
    found = examine_assumption_1(X, lambda rows: rows[:, 0] ** 3 / 3, lambda rows: rows**2, tau=0.5)
    assert found.gradient_bound == pytest.approx(2.25)


def test_a_distribution_with_nearly_all_mass_at_the_center_has_a_small_constant() -> None:
    rng, radii = np.random.default_rng(0), np.array([0.1, 0.2])
    concentrated = np.vstack([0.001 * ball(rng, 3900, 2), ball(rng, 100, 2)])
    assert mass_constant(concentrated, radii) < 0.03
    assert mass_constant(ball(rng, 4000, 2), radii) > 0.2


def test_the_constant_of_an_interval_worked_by_hand() -> None:
    # Five points at distance 1/2. At an end, two of five are within 1/2 and all within 2: 0.4 / 0.5 and 1 / 2.
    X = np.array([[-1.0], [-0.5], [0.0], [0.5], [1.0]])
    assert mass_constant(X, [0.5]) == pytest.approx(0.8)
    assert mass_constant(X, [0.5, 2.0]) == pytest.approx(0.5)
    assert mass_constant(X, [0.5], points=2) == pytest.approx(0.8)


def test_no_distribution_has_mass_at_all_radii() -> None:
    # Erratum 19: a mass is at most 1, so that the constant vanishes as the radius grows.
    X = ball(np.random.default_rng(0), 200, 2)
    constants = [mass_constant(X, [radius]) for radius in (2.0, 20.0, 200.0)]
    assert constants == pytest.approx([1 / 4, 1 / 400, 1 / 40_000])


def test_arguments_are_checked() -> None:
    with pytest.raises(DomainError, match="tau must be > 0, got 0"):
        examine_assumption_1([[0.0]], lambda rows: rows[:, 0], lambda rows: rows, tau=0)
    with pytest.raises(ShapeError, match="gradients must have 1 columns, got 2"):
        examine_assumption_1([[0.0]], lambda rows: rows[:, 0], lambda rows: np.hstack([rows, rows]), tau=0.1)
    with pytest.raises(DomainError, match="radii must be > 0, got -1"):
        mass_constant([[0.0]], [-1.0])
