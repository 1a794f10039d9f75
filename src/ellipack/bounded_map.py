"""Entries by key, of which the oldest are dropped when there are too many: `BoundedMap`.

A map may be large, and a batch of rows changes few entries. A draft of a map is therefore not a copy: it shares the
entries with the map, and holds the changes apart, until `commit` writes them.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")
Default = TypeVar("Default")


class BoundedMap(Generic[Key, Value]):
    """Entries by key, in the order in which they were put. Beyond `most` entries, the oldest is dropped.

    Parameters
    ----------
    most : int
        Largest number of entries.
    entries : iterable of (key, value), default ()
        Entries with different keys, the oldest first; at most `most`.

    Examples
    --------
    >>> ages = BoundedMap(2, [("ann", 31), ("bob", 42)])
    >>> draft = ages.draft()
    >>> draft.put("ann", 32), draft.put("eve", 5)
    (False, True)
    >>> list(draft.items()), list(ages.items())
    ([('ann', 32), ('eve', 5)], [('ann', 31), ('bob', 42)])
    """

    def __init__(self, most: int, entries: Iterable[tuple[Key, Value]] = ()) -> None:
        self._most = most
        self._shared: OrderedDict[Key, Value] = OrderedDict(entries)
        self._put: OrderedDict[Key, Value] = OrderedDict()  # since the last commit
        self._hidden: set[Key] = set()  # keys of shared entries that were put again, removed or dropped since
        self._oldest: Iterator[Key] | None = None  # over the shared entries

    def __reduce__(self) -> tuple[type["BoundedMap[Any, Any]"], tuple[object, ...]]:
        return BoundedMap, (self._most, list(self.items()))

    def __len__(self) -> int:
        return len(self._shared) - len(self._hidden) + len(self._put)

    def __contains__(self, key: object) -> bool:
        return key in self._put or (key in self._shared and key not in self._hidden)

    def items(self) -> Iterator[tuple[Key, Value]]:
        """Return the entries, the oldest first."""
        yield from ((key, value) for key, value in self._shared.items() if key not in self._hidden)
        yield from self._put.items()

    def get(self, key: Key, default: Default) -> Value | Default:
        """Return the value of a key, or a default."""
        if key in self._put:
            return self._put[key]
        return default if key in self._hidden else self._shared.get(key, default)

    def put(self, key: Key, value: Value) -> bool:
        """Put an entry, as the newest one. Return whether the oldest one was dropped."""
        if key in self._shared:
            self._hidden.add(key)
        self._put[key] = value
        self._put.move_to_end(key)
        if len(self) <= self._most:
            return False
        self._drop_oldest()
        return True

    def remove(self, key: Key) -> None:
        """Remove the entry of a key, if there is one."""
        self._put.pop(key, None)
        if key in self._shared:
            self._hidden.add(key)

    def _drop_oldest(self) -> None:
        if self._oldest is None:
            self._oldest = iter(self._shared)
        for key in self._oldest:
            if key not in self._hidden:
                self._hidden.add(key)
                return
        self._put.popitem(last=False)

    def draft(self) -> "BoundedMap[Key, Value]":
        """Return a map with the same entries, which can be changed without effect on this one."""
        draft = BoundedMap[Key, Value](self._most)
        draft._shared, draft._put, draft._hidden = self._shared, self._put.copy(), self._hidden.copy()
        return draft

    def commit(self) -> None:
        """Write the changes to the shared entries. Maps that share them must not be used any more.

        If it fails, it can be called again.
        """
        empty: tuple[OrderedDict[Key, Value], set[Key]] = OrderedDict(), set()
        self._oldest = None
        for key in self._hidden:
            if key not in self._put:
                self._shared.pop(key, None)
        for key, value in self._put.items():
            self._shared[key] = value
            self._shared.move_to_end(key)
        # In one call, so that an interrupt sees all of these or none.
        vars(self).update(_put=empty[0], _hidden=empty[1])
