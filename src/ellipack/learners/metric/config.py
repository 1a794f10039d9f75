"""Settings of `MetricRegressor` that few users change."""

from dataclasses import dataclass

from ellipack.validation import check_boolean, check_in_range, check_integer

_MAX_CANDIDATES = 32  # limit of each list, powers and ridges; each pair is scored at the end of each phase


@dataclass(frozen=True)
class MetricConfig:
    """Settings of `MetricRegressor`. The defaults need no tuning.

    Parameters
    ----------
    growth : float, default 1.5
        Last round of a phase relative to the last round of the phase before.
    powers : tuple of float, default (0.25, 0.35, 0.5, 0.7)
        Exponents p of the candidates ``(G/|G| + ridge I)**(2p)``, where G is the gradient outer product; 0.5 gives the
        paper's metric.
    ridges : tuple of float, default (0.001, 0.01)
        Ridges relative to the spectral norm of the gradient outer product.
    validation_points : int, default 400
        Largest number of centers whose leave-one-out errors score the candidates.
    pool : int, default 6000
        Largest number of centers, drawn at random, among which the neighbors of validation points are searched. With
        more than 333 features there are fewer.
    label_margin : float, default 0.05
        Margin by which predictions may exceed the range of the labels so far, relative to that range.
    stack_prior : float, default 50.0
        Strength of the prior that pulls the stack of experts to their aggregation, in variances of the label.
    importance : bool, default True
        Whether the importance of the features is measured.
    max_keys : int, default 100_000
        Number of keys whose past is remembered. Beyond it, the key that was learned least recently is forgotten.

    Raises
    ------
    DomainError
        If a value is out of range.

    Examples
    --------
    >>> MetricConfig(powers=(0.5,)).ridges
    (0.001, 0.01)
    >>> MetricConfig(growth=1.0)
    Traceback (most recent call last):
    ellipack.errors.DomainError: growth must be from 1.05 to 10, got 1.0
    """

    growth: float = 1.5
    powers: tuple[float, ...] = (0.25, 0.35, 0.5, 0.7)
    ridges: tuple[float, ...] = (0.001, 0.01)
    validation_points: int = 400
    pool: int = 6000
    label_margin: float = 0.05
    stack_prior: float = 50.0
    importance: bool = True
    max_keys: int = 100_000

    def __post_init__(self) -> None:
        # Values are checked here, because a learner must not fail in the middle of a batch. They become numbers of
        # Python, which files can hold.
        values: dict[str, object] = {
            "growth": check_in_range(self.growth, "growth", 1.05, 10.0),
            "powers": _check_candidates(self.powers, "powers", 0.0, 2.0),
            "ridges": _check_candidates(self.ridges, "ridges", 1e-12, 1.0),
            "validation_points": check_integer(self.validation_points, "validation_points", 8),
            "pool": check_integer(self.pool, "pool", self.validation_points),
            "label_margin": check_in_range(self.label_margin, "label_margin", 0.0, 1.0),
            "stack_prior": check_in_range(self.stack_prior, "stack_prior", 1e-6, 1e6),
            "importance": check_boolean(self.importance, "importance"),
            "max_keys": check_integer(self.max_keys, "max_keys", 1, 2**40),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)


def _check_candidates(values: tuple[float, ...], name: str, least: float, most: float) -> tuple[float, ...]:
    """Return a list of settings as floats."""
    check_integer(len(values), f"the number of {name}", 0, _MAX_CANDIDATES)
    return tuple(check_in_range(value, name, least, most) for value in values)
