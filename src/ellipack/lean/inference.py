"""What numba finds out about types, remembered."""

from typing import Any, ClassVar

from numba.core import types
from numba.core.datamodel.registry import default_manager

from ellipack.lean import plain


def holds_references(type_: Any) -> bool:
    """Return whether somebody has to let go of a value of this type: an array, or what has arrays in it."""
    return bool(default_manager[type_].contains_nrt_meminfo())


class Remembering:
    """Numba's context of types, with a memory for what it finds out about its own functions, such as operators.

    By itself it goes through all that is known of an operator, for lists, texts and sets, again and again.
    """

    _found: ClassVar[dict[Any, Any]] = {}

    def __init__(self, context: Any, counting: bool) -> None:
        self._context, self._counting = context, counting

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, args: Any, kws: Any) -> Any:
        """Return what a function takes and returns when called with arguments of these types."""
        of_numba = type(function) is types.Function or not isinstance(function, types.Type)
        if kws or not of_numba:
            return self._context.resolve_function_type(function, args, kws)
        if (found := plain.signature_of(function, args)) is not None:
            return found
        return self._recall(lambda: self._context.resolve_function_type(function, args, kws), function, *args)

    def resolve_setitem(self, *args: Any) -> Any:
        """Return what putting an item somewhere takes."""
        return self._recall(lambda: self._context.resolve_setitem(*args), "setitem", *args)

    def _recall(self, find: Any, *asked: Any) -> Any:
        """Return what was found when the same was asked before, or find it."""
        key = self._counting, *asked
        found = self._found.get(key)
        if found is None:
            found = find()
            # With what a function of numba's takes and returns, numba itself remembers how it is compiled, counting
            # references or not, whichever was last: where that matters, it has to find it again.
            if found is not None and not (isinstance(asked[0], types.Function) and holds_references(found.return_type)):
                self._found[key] = found
        return found


def take_whole_numbers_alike(compiled: Any) -> None:
    """Let kernels call a function with constants and with 32 bits: numba would compile it anew for each."""
    template = compiled.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        kinds = [types.unliteral(arg) for arg in args]
        return template([types.int64 if kind == types.int32 else kind for kind in kinds], kws)

    compiled.get_call_template = get_call_template
