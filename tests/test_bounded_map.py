"""`BoundedMap` has the entries of a literal version, also in drafts and after commits that failed."""

import pickle
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.bounded_map import BoundedMap

Steps = list[tuple[str, int]]
STEPS: st.SearchStrategy[Steps] = st.lists(
    st.tuples(st.sampled_from(["put", "put", "remove", "draft", "commit"]), st.integers(0, 6)), max_size=40
)


def put(entries: "OrderedDict[int, int]", most: int, key: int, value: int) -> bool:
    """Put an entry, literally."""
    entries.pop(key, None)
    entries[key] = value
    if len(entries) <= most:
        return False
    entries.popitem(last=False)
    return True


@given(STEPS, st.integers(1, 5))
def test_entries_are_those_of_the_literal_version(steps: Steps, most: int) -> None:
    entries, found = OrderedDict[int, int](), BoundedMap[int, int](most)
    for value, (step, key) in enumerate(steps):
        if step == "put":
            assert found.put(key, value) == put(entries, most, key, value)
        elif step == "remove":
            found.remove(key)
            entries.pop(key, None)
        elif step == "draft":
            before, found = found, found.draft()
            changed = before.draft()
            changed.put(key, -1)
            assert list(before.items()) == list(entries.items())
        else:
            found.commit()
        assert list(found.items()) == list(entries.items())
        assert len(found) == len(entries)
        assert [found.get(each, None) for each in range(7)] == [entries.get(each) for each in range(7)]
        assert [each in found for each in range(7)] == [each in entries for each in range(7)]
    assert list(pickle.loads(pickle.dumps(found)).items()) == list(entries.items())


class Entries(OrderedDict[Any, Any]):
    """Entries that can't be moved a given number of times."""

    failures = 0

    def move_to_end(self, key: Any, last: bool = True) -> None:
        if self.failures:
            self.failures -= 1
            raise MemoryError
        super().move_to_end(key, last)


def test_a_commit_that_failed_can_be_repeated() -> None:
    entries = Entries(zip("abc", range(3), strict=True))
    draft = BoundedMap[str, int](3)
    draft._shared = entries
    for key, value in (("b", 7), ("d", 8)):
        draft.put(key, value)
    entries.failures = 1
    with pytest.raises(MemoryError):
        draft.commit()
    draft.commit()
    assert list(draft.items()) == [("c", 2), ("b", 7), ("d", 8)]
