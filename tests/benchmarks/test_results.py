import json
from pathlib import Path

import pytest

from benchmarks.results import read_results, store_section


def test_storing_a_section_keeps_the_others(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "results.json"
    assert read_results(path) == {}
    store_section("one", {"a": 1}, path)
    store_section("two", {"b": [1.5]}, path)
    store_section("one", {"a": 2}, path)
    sections = read_results(path)
    assert (sections["one"]["a"], sections["two"]["b"]) == (2, [1.5])
    assert {"date", "python", "cores", "versions"} <= set(sections["one"]["environment"])
    assert "numpy" in sections["one"]["environment"]["versions"]


def test_invalid_json_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    store_section("one", {"a": 1}, path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="not JSON compliant"):
        store_section("one", {"a": float("nan")}, path)
    assert path.read_bytes() == before
    assert json.loads(before)["one"]["a"] == 1
