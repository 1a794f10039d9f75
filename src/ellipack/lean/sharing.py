"""Parts of kernels whose machine code is made once, for all kernels of a process that call them.

A kernel on disk has the machine code of such parts with it, so that it is whole by itself: whatever was compiled later,
or changed since, it calls what it was compiled with. For that each has a name that no other has.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import uuid4

from llvmlite.binding import add_symbol
from numba.core.funcdesc import default_mangler
from numba.core.registry import cpu_target

_shared: dict[str, Any] = {}

Restore = Callable[[], None]


def unique_names() -> Callable[..., Any]:
    """Return what gives a function a name that none has had before, in any process."""
    tag = uuid4().hex

    def name(*named: Any, abi_tags: Any = (), uid: Any = None) -> Any:
        return default_mangler(*named, abi_tags=[*abi_tags, tag], uid=uid)

    return name


def share(name: str, library: Any) -> Restore:
    """Let kernels call a part by its name; return what a process has to do before it runs such a kernel from disk."""
    _publish(name, library)
    if library.has_dynamic_globals:
        raise TypeError("a part of kernels that is shared can't use what is somewhere else in another process")
    return partial(restore, name, library.serialize_using_object_code(), tuple(library._reload_init))


def restore(name: str, serialized: Any, needed: tuple[Restore, ...]) -> None:
    """Let kernels call a part that another process has compiled, and the parts that it calls."""
    if name not in _shared:
        for each in needed:
            each()
        _publish(name, cpu_target.target_context.codegen().unserialize_library(serialized))


def _publish(name: str, library: Any) -> None:
    add_symbol(name, library.get_pointer_to_function(name))
    _shared[name] = library
