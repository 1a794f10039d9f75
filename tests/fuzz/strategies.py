"""Hypothesis strategies of the fuzz tests, and the number of examples.

Set the environment variable ``FUZZ`` to multiply the number of examples.
"""

import os
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from ellipack.validation import Floats
from tests.strategies import ball, seeds

FUZZ_FACTOR = int(os.environ.get("FUZZ", "1"))


def n_examples(quick: int) -> int:
    """Return the number of examples, given that of a quick run."""
    return quick * FUZZ_FACTOR


SPECIAL_BYTES = [
    b'"',
    b"\n",
    b"\r",
    b",",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"{",
    b"}",
    b"nan",
    b"-inf",
    b"1e999",
    b"\t",
]
"""Bytes with a special meaning in some format."""


@st.composite
def mutated_bytes(draw: st.DrawFn, content: bytes) -> bytes:
    """Draw a copy of some bytes that is changed in one to six places."""
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, len(changed)))
        change = draw(st.sampled_from(["set", "insert", "cut", "copy"]))
        piece = draw(st.binary(max_size=4) | st.sampled_from(SPECIAL_BYTES))
        if change == "set":
            changed[place : place + len(piece)] = piece
        elif change == "insert":
            changed[place:place] = piece
        elif change == "cut":
            del changed[place : place + draw(st.integers(0, 200))]
        else:
            changed[place:place] = changed[place // 2 : place]
    return bytes(changed)


SIZES = [1.0, 1e3, 1e-3, 1e9, 1e-9, 1e30, 1e-30, 1e139, 1e-150, 1e-300, 5e-324]
LABEL_SIZES = [1.0, 1e3, 1e-3, 1e9, 1e-9, 1e30, 1e59, 1e-60, 1e-160, 1e-300]
SHAPES = ["any", "copies", "near copies", "sorted", "constant", "two places", "one feature", "far away", "grid"]
LABEL_SHAPES = ["any", "constant", "linear", "jump", "alternating", "one outlier", "sorted", "zeros", "copies differ"]


@dataclass(frozen=True)
class RowRecipe:
    """Recipe for adversarial rows and labels: short to print, and deterministic."""

    count: int
    shape: str
    size: float
    labels: str
    label_size: float
    seed: int

    def rows(self, d: int) -> tuple[Floats, Floats]:
        """Return rows with d features, and their labels."""
        rng = np.random.default_rng(self.seed)
        X = _rows(rng, self.count, d, self.shape)
        y = _labels(rng, X, self.labels)
        return np.clip(X * self.size, -1e140, 1e140), np.clip(y * self.label_size, -1e60, 1e60)

    def in_domain(self, d: int) -> tuple[Floats, Floats]:
        """Return rows of the same shape in the unit ball, and labels in [0, 1]."""
        rng = np.random.default_rng(self.seed)
        X = _rows(rng, self.count, d, self.shape)
        y = _labels(rng, X, self.labels)
        reach = max(1.0, float(np.sqrt((X**2).sum(axis=1)).max())) * (1 + 1e-12)
        span = float(np.ptp(y))
        held = np.clip((y - y.min()) / span, 0, 1) if span > 0 else np.full(len(y), 0.5)
        return X / reach * min(1.0, self.size), held * min(1.0, self.label_size)


def _rows(rng: np.random.Generator, n: int, d: int, shape: str) -> Floats:
    X = ball(rng, n, d)
    match shape:
        case "copies":
            X[:] = X[rng.integers(0, 1 + n // 8, size=n)]
        case "near copies":
            X[:] = X[0] * (1 + 1e-15 * rng.integers(-3, 4, size=(n, d)))
        case "sorted":
            X[:] = np.sort(X, axis=0)
        case "constant":
            X[:] = X[0, 0]
        case "two places":
            X[:] = np.where(rng.random((n, 1)) < 0.5, X[:1], -X[:1])
        case "one feature":
            X[:, 1:] = 0.0
        case "far away":
            X[rng.integers(n)] *= 1e6
        case "grid":
            X[:] = np.round(X, 1)
    return X


def _labels(rng: np.random.Generator, X: Floats, shape: str) -> Floats:
    n = len(X)
    y = np.tanh(X[:, 0]) + 0.1 * rng.normal(size=n)
    match shape:
        case "constant":
            y[:] = y[0]
        case "linear":
            y = X.sum(axis=1)
        case "jump":
            y[n // 2 :] += 10.0 ** rng.integers(0, 10)
        case "alternating":
            y = np.where(np.arange(n) % 2, 1.0, -1.0)
        case "one outlier":
            y[rng.integers(n)] *= 1e12
        case "sorted":
            y = np.sort(y)
        case "zeros":
            y = np.zeros(n)
        case "copies differ":
            y = rng.choice([0.0, 1.0], size=n)
    return np.clip(y, -10, 10) if shape == "any" else y


row_recipes = st.builds(
    RowRecipe,
    st.integers(1, 24),
    st.sampled_from(SHAPES),
    st.sampled_from(SIZES),
    st.sampled_from(LABEL_SHAPES),
    st.sampled_from(LABEL_SIZES),
    seeds,
)
