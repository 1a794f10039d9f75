"""Interrupts at every line of a package, one after the other.

Set ``INTERRUPTS=all`` to interrupt at every line of the whole library, which takes minutes.
"""

import os
import sys
from collections.abc import Callable
from dis import opname
from itertools import count
from linecache import getline
from types import FrameType
from typing import Any, TypeVar

Subject = TypeVar("Subject")


class InterruptAt:
    """Trace function that raises KeyboardInterrupt after a number of lines in some packages."""

    def __init__(self, line: int, packages: tuple[str, ...]) -> None:
        self.left = line
        self.paths = ("/ellipack/",) if os.environ.get("INTERRUPTS") == "all" else packages

    def __call__(self, frame: FrameType, event: str, _: object) -> "InterruptAt | None":
        if not any(path in frame.f_code.co_filename for path in self.paths):
            return None
        if event == "line" and not _is_uninterruptible(frame):
            self.left -= 1
            if self.left == -1:
                raise KeyboardInterrupt
        return self


def _is_uninterruptible(frame: FrameType) -> bool:
    """Return whether the interpreter does not look for signals at this line.

    It does not where a line has no instruction, as that of a ``try``, and before it calls `__exit__`.
    """
    instruction = opname[frame.f_code.co_code[frame.f_lasti]]
    line = getline(frame.f_code.co_filename, frame.f_lineno).lstrip()
    return instruction == "NOP" or (instruction == "LOAD_CONST" and line.startswith("with "))


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
) -> int:
    """Call a function on new subjects, each time with an interrupt one line later; return the number of lines.

    `check` is called after each interrupt, and after the first call that was not interrupted.
    """
    for line in count():
        subject = prepare()
        stopped = interrupted(line, packages, call, subject)
        check(subject)
        if not stopped:
            return line
    raise AssertionError
