"""The settings of the practical learner that most users never touch."""

from dataclasses import dataclass

from ellipack.validation import whole, within

_MOST_CANDIDATES = 32  # of each: every pair of a power and a ridge is judged at the end of every phase


@dataclass(frozen=True)
class MetricConfig:
    """Settings of the practical learner; the defaults need no tuning.

    Attributes
    ----------
    growth : how much longer a phase is than the one before.
    powers, ridges : candidates for the metric are powers of the gradient outer product plus a ridge; a power of 0.5 is
        the paper's metric.
    judged, pool : how many centres judge the candidates, out of how many drawn.
    widening : how far beyond the labels seen a prediction may go, relative to their range.
    stack_prior : how firmly the stack of experts holds to their mixture, in variances of the label.
    """

    growth: float = 1.5
    powers: tuple[float, ...] = (0.25, 0.35, 0.5, 0.7)
    ridges: tuple[float, ...] = (0.001, 0.01)
    judged: int = 400
    pool: int = 6000
    widening: float = 0.05
    stack_prior: float = 50.0

    def __post_init__(self) -> None:
        # Here and not on use: a learner must not find out in the middle of a batch.
        within(self.growth, "growth", 1.05, 10.0)
        for name, least, most in (("powers", 0.0, 2.0), ("ridges", 1e-12, 1.0)):
            values = getattr(self, name)
            whole(len(values), f"the number of {name}", 0, _MOST_CANDIDATES)
            for value in values:
                within(value, name, least, most)
        whole(self.judged, "judged", 8)
        whole(self.pool, "pool", self.judged)
        within(self.widening, "widening", 0.0, 1.0)
        within(self.stack_prior, "stack_prior", 1e-6, 1e6)
