"""Compiled steps of the aggregation: weights, rewards, recursive least squares."""

import math
from typing import NamedTuple

import numpy as np

from ellipack._kernels import kernel, subkernel
from ellipack.validation import Floats

LEAST_SCALE = 1e-290
"""Regrets below this count as none: a rate is the inverse of one, and must be a number."""


class Bernstein(NamedTuple):
    """What Bernstein aggregation carries, an entry an expert (but for the scale, which is one number).

    Attributes
    ----------
    priors : logarithms of the weights it began with.
    gains : the sum of ``r - rate * r**2`` over rounds, r being the regret to the expert, linearised and scaled.
    squares : the sum of ``r**2``.
    scale : the largest regret to any expert so far, in size.
    """

    priors: Floats
    gains: Floats
    squares: Floats
    scale: Floats


class LeastSquares(NamedTuple):
    """What recursive least squares carries: the inverse of the regularised Gram matrix, and the coefficients."""

    inverse: Floats
    coefficients: Floats


@subkernel
def rate(squares: float, scale: float, logarithm: float) -> float:
    """Return an expert's learning rate, by the logarithm of how many experts there are."""
    largest = 0.5 / scale
    return largest if squares <= 0.0 else min(largest, math.sqrt(logarithm / squares))


@kernel
def weigh(state: Bernstein, weights: Floats) -> None:
    """Fill in the experts' weights, which add up to 1."""
    experts, most = len(weights), -np.inf
    logarithm = math.log(experts)
    for k in range(experts):
        weights[k] = state.priors[k]
        if state.scale[0] > 0.0:
            eta = rate(state.squares[k], state.scale[0], logarithm)
            weights[k] += math.log(eta) + eta * state.gains[k]
        most = max(most, weights[k])
    total = 0.0
    for k in range(experts):
        weights[k] = math.exp(weights[k] - most)
        total += weights[k]
    for k in range(experts):
        weights[k] /= total


@subkernel
def reward(state: Bernstein, predictions: Floats, mixture: float, label: float) -> None:
    """Move the state on by a round, once the label is known."""
    experts, before, logarithm = len(predictions), state.scale[0], math.log(len(predictions))
    error = 2.0 * (mixture - label)
    after = before
    for k in range(experts):
        after = max(after, abs(error * (mixture - predictions[k])))
    if after < LEAST_SCALE:
        return
    state.scale[0] = after
    if before <= 0.0:
        return
    for k in range(experts):
        # Shrunk so that no regret exceeds the scale by which rates were set before the label was known.
        regret = error * (mixture - predictions[k]) * (before / after)
        eta = rate(state.squares[k], before, logarithm)
        state.gains[k] += regret - eta * regret * regret
        state.squares[k] += regret * regret


@subkernel
def dot(left: Floats, right: Floats) -> float:
    """Return the sum of products, in order."""
    total = 0.0
    for k in range(len(left)):
        total += left[k] * right[k]
    return total


@subkernel
def regress(state: LeastSquares, features: Floats, target: float, gain: Floats) -> None:
    """Take in one more row; `gain` is room for as many numbers as there are features."""
    count = len(features)
    gain[:] = 0.0
    for i in range(count):
        for j in range(count):
            gain[j] += features[i] * state.inverse[i, j]
    scale = 1.0 + dot(features, gain)
    if scale < 1.0:  # by rounding alone: there is nothing left to learn in this direction, and the inverse would grow
        return
    error = (target - dot(state.coefficients, features)) / scale
    for i in range(count):
        state.coefficients[i] += gain[i] * error
        part = gain[i] / scale
        for j in range(count):
            state.inverse[i, j] -= part * gain[j]


@subkernel
def fade(regression: LeastSquares, span: float, gain: Floats) -> None:
    """Let a regression forget, so that rounds as long ago as the span count an e-th part; `gain` is room.

    Coefficients that rows say nothing of become no less certain than by the prior: without that bound, a feature that
    does not vary would in time throw the regression. Kept symmetric, since what is not would grow for ever.
    """
    inverse, kept = regression.inverse, 1.0 - 1.0 / span
    less = math.sqrt(1.0 / kept)
    for i in range(len(gain)):
        gain[i] = less if 0.0 < inverse[i, i] <= kept else 1.0
    for i in range(len(gain)):
        for j in range(i, len(gain)):
            inverse[i, j] *= gain[i] * gain[j]
            inverse[j, i] = inverse[i, j]
