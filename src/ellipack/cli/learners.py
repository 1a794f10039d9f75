"""Learners of the command line, by name and with parameters."""

import json
import os
from collections.abc import Callable, Sequence
from typing import Any, Final

from ellipack.cli.options import DEFAULT_LEARNER, Options
from ellipack.errors import DomainError, InputError
from ellipack.estimators import (
    GradientOuterProduct,
    KeyedRegressor,
    MetricRegressor,
    PackingRegressor,
    PhasedRegressor,
    RescaledRegressor,
)
from ellipack.estimators.base import StreamingRegressor
from ellipack.estimators.input_checks import key_columns
from ellipack.metric import LocalSlopes
from ellipack.tabular import TableStream

LEARNER_FACTORIES: Final[dict[str, Callable[..., Any]]] = {
    "metric": MetricRegressor,
    "keyed": KeyedRegressor,
    "packing": PackingRegressor,
    # Local slopes find directions; the estimator of appendix A does not at practical sizes.
    "phased": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes())),
}
"""Learners by their names on the command line."""


def make_learner(name: str, settings: Sequence[str]) -> StreamingRegressor[Any]:
    """Return a learner by its name, with parameters ``NAME=VALUE``. The paper's learners are rescaled to any data."""
    learner: StreamingRegressor[Any] = LEARNER_FACTORIES[name]()
    for text in settings:
        key, value = parse_setting(text, learner)
        learner.set_params(**{key: value})
    return learner if name in ("metric", "keyed") else RescaledRegressor(learner)


def use_past(learner: StreamingRegressor[Any], options: Options, table: TableStream) -> None:
    """Set whether a learner uses the past, and the columns of its keys."""
    if not isinstance(learner, MetricRegressor | KeyedRegressor):
        if options.by:
            raise InputError(f"--by needs --learner {DEFAULT_LEARNER} or keyed: the other learners do not use the past")
        return
    if isinstance(learner, KeyedRegressor) and not options.by:
        raise InputError("--learner keyed needs --by, the column whose values have a learner each")
    if options.by and not options.past and isinstance(learner, MetricRegressor):
        raise InputError("--by needs the past: omit --no-past")
    for name in options.by:
        if name not in table.columns:
            columns = ", ".join(table.columns)
            raise InputError(f"--by must be one of the columns of {table.name}: {columns}, got {name!r}")
    if options.target in options.by:
        raise InputError(f"--by must not be the target, because a row is predicted without it, got {options.target!r}")
    if options.by:
        learner.set_params(by=key_columns(options.by))
    if not options.past and isinstance(learner, KeyedRegressor):
        learner.set_params(pooled=MetricRegressor(past=False))
    elif not options.past:
        learner.set_params(past=False)


def use_folder_of_outputs(learner: StreamingRegressor[Any], *paths: str | None) -> None:
    """Have a temporary file of learners of keys in the folder of the first output that is a file, if there is one."""
    files = [path for path in paths if path not in (None, "-") and (os.path.isfile(path) or not os.path.exists(path))]
    if isinstance(learner, KeyedRegressor) and files:
        learner.use_temporary_folder(os.path.dirname(os.path.realpath(files[0])))


def parse_setting(text: str, learner: StreamingRegressor[Any]) -> tuple[str, Any]:
    """Return name and value of a parameter ``NAME=VALUE``. The learner checks the value itself."""
    parameters = learner.get_params(deep=False)
    names = sorted(
        name for name, value in parameters.items() if isinstance(value, int | float) or name == "max_centers"
    )
    name, equals, given = text.partition("=")
    if not equals or name not in names:
        raise DomainError(f"--set must be NAME=VALUE with one of the names {', '.join(names)}, got {text!r}")
    value = _parse_json(given)
    if isinstance(parameters[name], bool) and name != "past" and not isinstance(value, bool):
        raise DomainError(f"--set {name} must be true or false, got {given!r}")
    return name, value


def _parse_json(text: str) -> Any:
    """Return the value of a JSON text, or the text itself if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text
