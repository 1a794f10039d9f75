"""Settings of the practical learner that most users never change."""

from dataclasses import dataclass

from ellipack.validation import check_in_range, check_integer

_MOST_CANDIDATES = 32  # of powers and of ridges: every pair is scored at the end of every phase


@dataclass(frozen=True)
class MetricConfig:
    """Settings of the practical learner; the defaults need no tuning.

    Parameters
    ----------
    growth : float, default 1.5
        The number of rounds by the end of a phase, relative to the end of the phase before.
    powers : tuple of float, default (0.25, 0.35, 0.5, 0.7)
        Candidates for the metric are powers of the gradient outer product plus a ridge; 0.5 is the paper's metric.
    ridges : tuple of float, default (0.001, 0.01)
        The ridges, relative to the spectral norm of the gradient outer product.
    validation_points : int, default 400
        The largest number of centers whose leave-one-out errors score the candidates.
    pool : int, default 6000
        The largest number of centers among which their neighbors are searched, drawn at random.
    label_margin : float, default 0.05
        How far a prediction may lie beyond the labels seen so far, relative to their range.
    stack_prior : float, default 50.0
        How strongly the stack of experts is pulled to their aggregation, in variances of the label.
    """

    growth: float = 1.5
    powers: tuple[float, ...] = (0.25, 0.35, 0.5, 0.7)
    ridges: tuple[float, ...] = (0.001, 0.01)
    validation_points: int = 400
    pool: int = 6000
    label_margin: float = 0.05
    stack_prior: float = 50.0

    def __post_init__(self) -> None:
        # Checked here and not on use: a learner must not fail in the middle of a batch.
        check_in_range(self.growth, "growth", 1.05, 10.0)
        for name, least, most in (("powers", 0.0, 2.0), ("ridges", 1e-12, 1.0)):
            values = getattr(self, name)
            check_integer(len(values), f"the number of {name}", 0, _MOST_CANDIDATES)
            for value in values:
                check_in_range(value, name, least, most)
        check_integer(self.validation_points, "validation_points", 8)
        check_integer(self.pool, "pool", self.validation_points)
        check_in_range(self.label_margin, "label_margin", 0.0, 1.0)
        check_in_range(self.stack_prior, "stack_prior", 1e-6, 1e6)
