"""Which learner a run is to have, from the words of the command line."""

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from ellipack.errors import DomainError
from ellipack.estimators import (
    GradientOuterProduct,
    MetricRegressor,
    PackingRegressor,
    PhasedRegressor,
    RescaledRegressor,
)
from ellipack.estimators.base import StreamingRegressor
from ellipack.metric import LocalSlopes

LEARNERS: Final[dict[str, Callable[..., Any]]] = {
    "metric": MetricRegressor,
    "packing": PackingRegressor,
    # With an estimate that finds directions: appendix A to the letter would find none.
    "phased": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes())),
}
"""By the names that the command line has for them."""


def learner_of(name: str, settings: Sequence[str]) -> StreamingRegressor[Any]:
    """Return a learner by its name, with settings ``NAME=VALUE``; the paper's for any features and labels."""
    learner: StreamingRegressor[Any] = LEARNERS[name]()
    for text in settings:
        key, value = setting_of(text, learner)
        learner.set_params(**{key: value})
    return learner if name == "metric" else RescaledRegressor(learner)


def setting_of(text: str, learner: StreamingRegressor[Any]) -> tuple[str, Any]:
    """Return the name and the value of a setting ``NAME=VALUE``; the learner itself says what values it takes."""
    plain = {name: value for name, value in learner.get_params(deep=False).items() if isinstance(value, int | float)}
    name, equals, given = text.partition("=")
    if not equals or name not in plain:
        raise DomainError(f"--set must be NAME=VALUE with a name of {', '.join(sorted(plain))}, got {text!r}")
    value = _value(given)
    if isinstance(plain[name], bool) and not isinstance(value, bool):
        raise DomainError(f"--set {name} must be true or false, got {given!r}")
    return name, value


def _value(text: str) -> Any:
    """Return the number, boolean or list that a text is in JSON, or the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text
