import json
from pathlib import Path

import pytest

from benchmarks.results import read, store


def test_a_section_is_stored_beside_the_others(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "results.json"
    assert read(path) == {}
    store("one", {"a": 1}, path)
    store("two", {"b": [1.5]}, path)
    store("one", {"a": 2}, path)
    sections = read(path)
    assert (sections["one"]["a"], sections["two"]["b"]) == (2, [1.5])
    assert {"on", "python", "cores", "versions"} <= set(sections["one"]["made"])
    assert "numpy" in sections["one"]["made"]["versions"]


def test_what_is_no_json_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    store("one", {"a": 1}, path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="not JSON compliant"):
        store("one", {"a": float("nan")}, path)
    assert path.read_bytes() == before
    assert json.loads(before)["one"]["a"] == 1
