"""The gradient outer product: gradients in, the matrix whose metric the paper learns out."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellipack.errors import DomainError, InputError, ShapeError
from ellipack.metric._kernels import add_outer_products
from ellipack.metric.gradients import GradientEstimator, KernelDifferences
from ellipack.validation import Floats, rows, whole

_LIMBS = 68  # 2,098 bits hold every float there is; the rest is for carries
_UNIT = 1074  # the smallest float is 2**-1074
_LARGEST = 1e153  # the square of anything up to here is finite, and so is a sum of 2**30 of them in the limbs
_CARRY_AFTER = 2**29  # additions that a limb has room for


@dataclass(eq=False)
class OuterProducts:
    """A running sum of outer products that merges exactly.

    The sums are kept in fixed point, wide enough for any float, so adding does not round. In whatever order
    gradients come, on however many machines, merged in whatever tree: the estimate has the same bits, and it is
    the true mean of the products, rounded once.

    >>> sums = OuterProducts.init(2)
    >>> sums.add([[1.0, 2.0], [3.0, 0.0]])
    >>> sums.estimate().tolist()
    [[5.0, 1.0], [1.0, 2.0]]
    """

    count: int
    limbs: NDArray[np.int64]
    pending: int = 0  # additions since the last carry

    @classmethod
    def init(cls, d: int) -> "OuterProducts":
        """Return an empty sum for gradients of d entries."""
        entries = whole(d, "d", 1) * (d + 1) // 2
        return cls(0, np.zeros((entries, _LIMBS), dtype=np.int64))

    @property
    def dimension(self) -> int:
        """The number of entries of a gradient."""
        return int(np.sqrt(2 * len(self.limbs)))

    def add(self, gradients: ArrayLike) -> None:
        """Add the outer product of each row with itself."""
        table = rows(gradients, self.dimension, "gradients")
        if np.abs(table).max() > _LARGEST:
            raise DomainError(f"gradients must be at most {_LARGEST:g} in size, got {np.abs(table).max():.6g}")
        for start in range(0, len(table), _CARRY_AFTER):
            part = table[start : start + _CARRY_AFTER]
            if self.pending + len(part) > _CARRY_AFTER:
                _carry(self.limbs)
                self.pending = 0
            add_outer_products(self.limbs, part)
            self.pending += len(part)
        self.count += len(table)

    def merge(self, other: "OuterProducts") -> None:
        """Add another sum to this one, as if its gradients had been added here."""
        if other.limbs.shape != self.limbs.shape:
            raise ShapeError(f"merge needs sums of the same d, got {self.dimension} and {other.dimension}")
        _carry(self.limbs)
        # What the other one has pending counts as pending here: its limbs come as they are.
        self.limbs += other.limbs
        self.count += other.count
        self.pending = other.pending + 1

    def estimate(self) -> Floats:
        """Return the mean outer product: each entry the float nearest to the true one."""
        if self.count == 0:
            raise ShapeError("a mean outer product needs at least one gradient, got none")
        limbs = self.limbs.copy()  # reading changes nothing
        _carry(limbs)
        digits = np.ascontiguousarray(limbs[:, :-1].astype("<u4"))
        # Whole numbers divide with a single rounding, however long they are.
        unit = self.count << _UNIT
        tops = limbs[:, -1].tolist()
        means = [
            ((top << (32 * (_LIMBS - 1))) + int.from_bytes(row.tobytes(), "little")) / unit
            for top, row in zip(tops, digits, strict=True)
        ]
        gop = np.empty((self.dimension, self.dimension))
        gop[np.tril_indices(self.dimension)] = means
        gop.T[np.tril_indices(self.dimension)] = means
        return gop


def _carry(limbs: NDArray[np.int64]) -> None:
    """Bring every limb but the last back to 32 bits, in place; the values stay what they are."""
    for k in range(_LIMBS - 1):
        limbs[:, k + 1] += limbs[:, k] >> 32
        limbs[:, k] &= 0xFFFFFFFF


@dataclass(frozen=True)
class GopEstimator:
    """How a gradient outer product is estimated from rows: gradients at anchors, and then their average.

    Attributes
    ----------
    gradients : what estimates a gradient; the letter of appendix A if not given.
    diagonal : average to `gradient_weights`, not to the whole matrix.
    anchors : estimate gradients at so many of the rows, drawn at random; at all of them if not given.
    random_state : of that draw.
    """

    gradients: GradientEstimator = field(default_factory=KernelDifferences)
    diagonal: bool = False
    anchors: int | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        # Here and not on use: a learner must not find out in the middle of a batch.
        if not callable(getattr(self.gradients, "gradients", None)):
            raise InputError(f"gradients must be an estimator such as LocalSlopes(), got {self.gradients!r}")
        if self.anchors is not None:
            whole(self.anchors, "anchors", 1)
        whole(self.random_state, "random_state", 0)

    def estimate(self, X: ArrayLike, y: ArrayLike) -> Floats:
        """Return the estimate ``G-hat_n`` from n rows and their labels."""
        table = rows(X)
        at = table
        if self.anchors is not None and self.anchors < len(table):
            draw = np.random.default_rng(self.random_state).choice(len(table), self.anchors, replace=False)
            at = table[np.sort(draw)]
        slopes = self.gradients.gradients(table, y, at)
        return gradient_weights(slopes) if self.diagonal else mean_outer_product(slopes)


def mean_outer_product(gradients: ArrayLike) -> Floats:
    """Return ``G-hat``, the mean outer product of gradients with themselves, a gradient a row (eq. gradEst)."""
    table = rows(gradients, name="gradients")
    sums = OuterProducts.init(table.shape[1])
    sums.add(table)
    return sums.estimate()


def gradient_weights(gradients: ArrayLike) -> Floats:
    """Return a diagonal stand-in for the gradient outer product, after Kpotufe et al.'s gradient weights.

    A feature counts in proportion to the mean size of the derivative along it: an L1 norm, steadier than the L2
    norm on the diagonal of the gradient outer product. Unlike theirs, the weights are squared, which puts them in
    the units of the gradient outer product, whose place they take.

    >>> gradient_weights([[1.0, 2.0], [3.0, -2.0]]).tolist()
    [[4.0, 0.0], [0.0, 4.0]]
    """
    return np.diag(np.abs(rows(gradients, name="gradients")).mean(axis=0) ** 2)
