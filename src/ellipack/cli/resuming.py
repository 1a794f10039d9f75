"""A saved run that is gone on with: whether it is the one that the command line means, and from which row on."""

import os
from typing import Any

from ellipack.cli.learners import LEARNERS, setting_of
from ellipack.cli.options import Options
from ellipack.cli.saying import say
from ellipack.errors import InputError
from ellipack.evaluation.append_only_file import Written
from ellipack.evaluation.run import Run, load_run


def resumed(options: Options) -> tuple[Run, int]:
    """Return the run to go on with, and how many rows of the stream to pass over.

    Under the name of the same stream it goes on behind the last row that was learned. Standard input can't be told by
    a name: what comes is taken for what comes next. Another stream is learned from its first row, and its predictions
    are its own.
    """
    run = load_run(str(options.resume))
    _check_same(run, options)
    said = f"going on with {options.resume} ({run.scores.rows:,} rows learned)"
    if options.stream == run.source == "-":
        run.before = run.position
        say(f"{said}, with what comes on standard input")
        passed = 0
    elif "-" not in (options.stream, run.source) and _same_path(options.stream, run.source):
        passed = run.position
        say(f"{said}, behind row {passed:,} of {options.stream}")
    else:
        say(f"{said}, from the first row of {options.stream}: what it has learned is from {run.source}")
        run.position, run.written, passed = 0, Written(), 0
    if run.written.size and options.predictions is None:
        say("warning: no --predictions, though the run has written some: there will be none from here on")
    run.source = options.stream
    return run, passed


def _same_path(one: str, other: str) -> bool:
    return os.path.abspath(one) == os.path.abspath(other)


def _check_same(run: Run, options: Options) -> None:
    """Raise if an option asks for anything else than the saved run has."""
    _agree("--target", options.target, run.encoding.target)
    learner: Any = getattr(run.learner, "regressor", run.learner)
    if options.learner is not None and type(learner) is not type(LEARNERS[options.learner]()):
        raise _refusal("--learner", type(learner).__name__, options.learner)
    for text in options.settings:
        name, value = setting_of(text, learner)
        _agree(f"--set {name}", value, learner.get_params(deep=False)[name])
    kinds = {column.name: column.kind for column in run.encoding.columns()}
    if options.take and {*options.take} != {*kinds}:
        raise _refusal("--take", ", ".join(kinds), ", ".join(options.take))
    for name in options.drop:
        if name in kinds:
            raise _refusal("--drop", f"{name!r} among its columns", repr(name))
    for name, kind in options.kind_of().items():
        if name != run.encoding.target:
            _agree(f"--kind of {name!r}", kind, kinds.get(name))


def _agree(option: str, given: Any, has: Any) -> None:
    if given is not None and given != has:
        raise _refusal(option, repr(has), repr(given))


def _refusal(option: str, has: str, given: str) -> InputError:
    return InputError(f"{option} must be that of the resumed run, which has {has}, got {given}: leave it out")
