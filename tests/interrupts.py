"""Interrupts at every line of a package, one after the other.

Set ``INTERRUPTS=all`` to interrupt at every line of the whole library, which takes minutes, and ``INTERRUPTS=each`` to
interrupt at every line of the package where a sample of them is the default.
"""

import os
import sys
from collections.abc import Callable
from dis import opname
from functools import cache
from itertools import count
from linecache import getline
from types import CodeType, FrameType
from typing import Any, TypeVar

Subject = TypeVar("Subject")


class InterruptAt:
    """Trace function that raises KeyboardInterrupt after a number of lines in some packages."""

    def __init__(self, line: int, packages: tuple[str, ...]) -> None:
        self.left = line
        self.paths = ("/ellipack/",) if os.environ.get("INTERRUPTS") == "all" else packages

    def __call__(self, frame: FrameType, event: str, _: object) -> "InterruptAt | None":
        if not _is_in(frame.f_code, self.paths):
            return None
        if event == "line" and _is_interruptible(frame.f_code, frame.f_lasti, frame.f_lineno):
            self.left -= 1
            if self.left == -1:
                self.interrupt()
        return self

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt."""
        raise KeyboardInterrupt


@cache
def _is_in(code: CodeType, paths: tuple[str, ...]) -> bool:
    return any(path in code.co_filename for path in paths)


@cache
def _is_interruptible(code: CodeType, position: int, line: int) -> bool:
    """Return whether the interpreter looks for signals at this line.

    It does not where a line has no instruction, as that of a ``try``, and before it calls `__exit__`.
    """
    instruction = opname[code.co_code[position]]
    text = getline(code.co_filename, line).lstrip()
    return instruction != "NOP" and not (instruction in ("LOAD_CONST", "SWAP") and text.startswith("with "))


def interrupted(line: int, packages: tuple[str, ...], call: Callable[..., object], *arguments: Any) -> bool:
    """Call a function with an interrupt after a number of lines of some packages; return whether it happened."""
    before = sys.gettrace()
    sys.settrace(InterruptAt(line, packages))
    try:
        call(*arguments)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def interrupt_everywhere(
    packages: tuple[str, ...],
    prepare: Callable[[], Subject],
    call: Callable[[Subject], object],
    check: Callable[[Subject], object],
    step: int = 1,
) -> int:
    """Call a function on new subjects, each time with an interrupt `step` lines later; return the number of lines.

    `check` is called after each interrupt, and after the first call that was not interrupted.
    """
    for line in count(0, 1 if os.environ.get("INTERRUPTS") in ("all", "each") else step):
        subject = prepare()
        stopped = interrupted(line, packages, call, subject)
        check(subject)
        if not stopped:
            return line
    raise AssertionError
