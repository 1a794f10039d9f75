import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

from ellipack.errors import ModelFileError
from ellipack.serialization import Archive, atomic_file, file, read, write

SMALL = Archive({"clock": 3, "name": "naïve \u2028"}, {"a": np.arange(6.0).reshape(2, 3), "b": np.arange(2)})


def test_read_returns_what_write_wrote(tmp_path: Path) -> None:
    nested = SMALL.with_parts(part=Archive({"x": [1.5, None]}, {"empty": np.empty((0, 3))}))
    write(tmp_path / "model", "Kind", nested)
    kind, archive = read(tmp_path / "model")
    assert kind == "Kind"
    assert archive.facts == nested.facts
    arrays = archive.arrays_by_full_name()
    assert arrays.keys() == {"a", "b", "part/empty"}
    for name, array in nested.arrays_by_full_name().items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)


def test_strided_arrays_are_written_by_value(tmp_path: Path) -> None:
    array = np.arange(12.0).reshape(3, 4)
    write(tmp_path / "model", "Kind", Archive(arrays={"t": array.T, "s": array[:, ::2], "r": array[::-1]}))
    arrays = read(tmp_path / "model")[1].arrays_by_full_name()
    np.testing.assert_array_equal(arrays["t"], array.T)
    np.testing.assert_array_equal(arrays["s"], array[:, ::2])
    np.testing.assert_array_equal(arrays["r"], array[::-1])


def test_equal_archives_give_equal_bytes(tmp_path: Path) -> None:
    write(tmp_path / "one", "Kind", SMALL)
    reordered = Archive(
        dict(reversed(SMALL.facts.items())), {name: SMALL.arrays[name] for name in reversed([*SMALL.arrays])}
    )
    write(tmp_path / "other", "Kind", reordered)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("small") / "model"
    write(path, "Kind", SMALL)
    return path.read_bytes()


def test_a_change_of_any_byte_is_detected(small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    for place in range(len(small)):
        for change in (0x01, 0x80, 0xFF):
            damaged = bytearray(small)
            damaged[place] ^= change
            path.write_bytes(damaged)
            with pytest.raises(ModelFileError, match="model"):
                read(path)


def test_truncated_and_extended_files_are_refused(small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    for damaged in [*(small[:length] for length in range(len(small))), small + b"\0", small * 2]:
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError, match="model"):
            read(path)


@given(st.binary(max_size=300))
def test_random_bytes_are_refused(data: bytes) -> None:
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"ellipack-random-{os.getpid()}"
    try:
        path.write_bytes(data)
        with pytest.raises(ModelFileError, match="not an ellipack model"):
            read(path)
    finally:
        path.unlink()


def signed(header: object, arrays: bytes = b"") -> bytes:
    """Return a file with any header and a valid checksum."""
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    data = len(text).to_bytes(8, "little") + text + arrays
    return data.replace(b"0" * 64, file._checksum(data).encode(), 1)


def metadata(**facts: object) -> dict[str, str]:
    return {"ellipack": "0" * 64 + json.dumps(facts)}


@pytest.mark.parametrize("rows", [10**18, -1, 2**64, 1.5, "many", None])
def test_a_header_with_a_wrong_shape_is_refused(rows: object, tmp_path: Path) -> None:
    entry = {"dtype": "F64", "shape": [rows, 3], "data_offsets": [0, 10**18]}
    header = {"__metadata__": metadata(format=1, version="1", kind="Kind"), "rows": entry}
    (tmp_path / "model").write_bytes(signed(header, b"\0" * 24))
    with pytest.raises(ModelFileError, match="is not a safetensors file"):
        read(tmp_path / "model")


def entry(start: object, end: object, **changes: object) -> dict[str, object]:
    """Return the entry of an array of two floats."""
    return {"dtype": "F64", "shape": [2], "data_offsets": [start, end]} | changes


@pytest.mark.parametrize("names", [["p", "p/x"], ["p/x", "p"], ["n/x", "b"], ["none/x", "b"]])
def test_a_file_with_arrays_outside_of_parts_is_refused(names: list[str], tmp_path: Path) -> None:
    facts = b'{"n":3, "p":{}}'
    described = {name: entry(16 * i, 16 * i + 16) for i, name in enumerate(names)}
    described["facts"] = {"dtype": "U8", "shape": [len(facts)], "data_offsets": [32, 32 + len(facts)]}
    header = {"__metadata__": metadata(format=1, version="1", kind="Kind")} | described
    (tmp_path / "model").write_bytes(signed(header, b"\0" * 32 + facts))
    with pytest.raises(ModelFileError, match=r"the array '.*' must"):
        read(tmp_path / "model")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": entry(0, 16), "b": entry(8, 24)}, "the array b must begin where the one before it ends"),
        ({"a": entry(0, 16), "b": entry(24, 40)}, "the array b must begin"),
        ({"a": entry(16, 32), "b": entry(0, 16)}, "the array a must begin"),
        ({"a": entry(0, 16), "b": entry(16, 32), "c": entry(32, 48)}, "the array c must begin"),
        ({"a": entry(-16, 0)}, "the array a must begin"),
        ({"a": entry(0, 16)}, "16 bytes follow the last array"),
        ({"a": entry(0, 16, dtype="BF16"), "b": entry(16, 32)}, "BF16"),
        ({"a": entry(0, 16, dtype=["F64"])}, "unhashable"),
        ({"a": entry(0, 16, shape=2)}, "a shape must be a short list"),
        ({"a": entry(0, 16, shape=[1] * 100)}, "a shape must be a short list"),
        ({"a": entry(0, 0, shape=[0, 2**63])}, "a shape must have counts"),
        ({"a": entry(0, 0, shape=[0, 2**62, 2**62]), "b": entry(0, 32, shape=[4])}, "too big"),
        ({"a": entry(0, 16, shape=[True, 2])}, "a shape must have counts"),
        ({"a": {"dtype": "F64"}}, "shape"),
        ({"a": []}, "list"),
    ],
)
def test_a_header_that_does_not_describe_the_bytes_is_refused(
    arrays: dict[str, object], message: str, tmp_path: Path
) -> None:
    header = {"__metadata__": metadata(format=1, version="1", kind="Kind"), **arrays}
    (tmp_path / "model").write_bytes(signed(header, b"\0" * 32))
    with pytest.raises(ModelFileError, match=f"is not a safetensors file: .*{message}"):
        read(tmp_path / "model")


@given(
    st.dictionaries(
        st.text(st.characters(exclude_characters="/"), max_size=3).filter(lambda name: name != "facts"),
        st.tuples(st.sampled_from(["float64", "int64", "uint8"]), st.lists(st.integers(0, 3), min_size=1, max_size=3)),
        max_size=4,
    )
)
def test_other_readers_of_safetensors_find_the_same_arrays(shapes: dict[str, tuple[str, list[int]]]) -> None:
    arrays = {name: np.arange(np.prod(shape)).astype(dtype).reshape(shape) for name, (dtype, shape) in shapes.items()}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        write(path, "Kind", Archive({}, arrays))
        found, theirs = read(path)[1].arrays_by_full_name(), load(path.read_bytes())
    theirs.pop("facts")
    for each in (found, theirs):
        assert {name: (array.dtype, array.shape, array.tobytes()) for name, array in each.items()} == {
            name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()
        }


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"format": 2, "version": "9.1"}, r"format 2 \(ellipack 9.1\), .* reads format 1: pip install --upgrade"),
        ({"format": True}, "has format True"),
        ({"format": "x"}, "has format x"),
        ({"format": 1}, "kind must be a string, got nothing"),
        ({"format": 1, "kind": "K"}, "facts must be an object, got None"),
    ],
)
def test_other_formats_are_refused(facts: dict[str, object], message: str, tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(signed({"__metadata__": metadata(**facts)}))
    with pytest.raises(ModelFileError, match=message):
        read(tmp_path / "model")


def test_a_deeply_nested_header_is_refused(tmp_path: Path) -> None:
    nested = b'{"__metadata__":{"ellipack":"' + b"0" * 64 + b"[" * 100_000 + b'"}}'
    (tmp_path / "model").write_bytes(signed(nested))
    with pytest.raises(ModelFileError, match="its header can't be read"):
        read(tmp_path / "model")


@pytest.mark.parametrize("facts", [b"[" * 100_000, b"{", b"\xff", b"[]", b""])
def test_invalid_facts_are_refused(facts: bytes, tmp_path: Path) -> None:
    entry = {"dtype": "U8", "shape": [len(facts)], "data_offsets": [0, len(facts)]}
    header = {"__metadata__": metadata(format=1, version="1", kind="Kind"), "facts": entry}
    (tmp_path / "model").write_bytes(signed(header, facts))
    with pytest.raises(ModelFileError, match=r"its facts can't be read|facts must be an object, got \[\]"):
        read(tmp_path / "model")


def test_a_file_with_a_wrong_checksum_is_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsing may take many times the memory of the file."""
    write(tmp_path / "model", "Kind", Archive({"lists": [[]] * 1000}))
    (tmp_path / "model").write_bytes((tmp_path / "model").read_bytes() + b" ")

    def parse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(file, "_parse_arrays", parse)
    monkeypatch.setattr(json, "loads", parse)
    with pytest.raises(ModelFileError, match="its checksum does not match"):
        read(tmp_path / "model")


def test_facts_may_be_longer_than_a_header_can_be(tmp_path: Path) -> None:
    """Sixteen columns of 10,000 categories of 100 Cyrillic letters took 112 MB in the header."""
    facts = {"categories": "\N{CYRILLIC SMALL LETTER YA}" * 51_000_000}
    write(tmp_path / "model", "Kind", Archive(facts))
    assert (tmp_path / "model").stat().st_size > 100_000_000
    assert read(tmp_path / "model")[1].facts == facts


def test_strings_that_are_not_unicode_are_restored(tmp_path: Path) -> None:
    path = os.fsdecode(b"ride\xff.csv")
    write(tmp_path / "model", "Kind", Archive({"source": path}))
    assert read(tmp_path / "model")[1].facts == {"source": path}


def test_other_safetensors_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(save({"weights": np.ones(3)}, {"made by": "others"}))
    with pytest.raises(ModelFileError, match="not an ellipack model"):
        read(tmp_path / "model")


def test_missing_files_and_directories_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="missing can't be read: No such file or directory"):
        read(tmp_path / "missing")
    with pytest.raises(ModelFileError, match="can't be read: Is a directory"):
        read(tmp_path)


def raise_disk_full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def contents_until_disk_full(*_: object) -> Iterator[bytes]:
    yield b"part"
    raise_disk_full()


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model"
    write(path, "Kind", SMALL)
    before = path.read_bytes()
    monkeypatch.setattr(file, "_contents", contents_until_disk_full)
    with pytest.raises(ModelFileError, match=r"can't be written; the existing file is unchanged: No space left"):
        write(path, "Kind", Archive({"clock": 4}))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


def test_a_failed_sync_of_the_directory_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model"
    write(path, "Kind", SMALL)
    monkeypatch.setattr(atomic_file, "sync_directory", raise_disk_full)
    with pytest.raises(
        ModelFileError, match=r"model is written, but a power failure may undo it: its directory .*No space left"
    ):
        write(path, "Kind", Archive({"clock": 4}))
    assert read(path)[1].facts["clock"] == 4
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("there", [True, False])
def test_symbolic_links_are_followed(there: bool, tmp_path: Path) -> None:
    for name in ("real", "links"):
        (tmp_path / name).mkdir()
    link, real = tmp_path / "links" / "model", tmp_path / "real" / "first"
    link.symlink_to(Path("..") / "real" / "first")
    if there:
        write(real, "Kind", SMALL)
    write(link, "Kind", Archive({"clock": 4}))
    assert link.is_symlink()
    assert not real.is_symlink()
    assert read(real)[1].facts["clock"] == 4
    assert (os.listdir(link.parent), os.listdir(real.parent)) == (["model"], ["first"])


LIMITED = """
import resource, signal, sys
import numpy as np
from ellipack.serialization import Archive, write
from ellipack.errors import ModelFileError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
write(sys.argv[1], "Kind", Archive(arrays={"a": np.ones(10)}))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    write(sys.argv[1], "Kind", Archive(arrays={"a": np.ones(100_000)}))
except ModelFileError as error:
    print(error)
"""


def test_a_full_disk_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "model"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], check=True, capture_output=True, text=True, timeout=120
    )
    assert "can't be written; the existing file is unchanged" in done.stdout
    assert read(path)[1].arrays_by_full_name()["a"].shape == (10,)
    assert os.listdir(tmp_path) == ["model"]


def test_paths_that_cannot_be_written_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="can't be written"):
        write(tmp_path / "missing" / "model", "Kind", SMALL)
    (tmp_path / "model").mkdir()
    with pytest.raises(ModelFileError, match="can't be written"):
        write(tmp_path / "model", "Kind", SMALL)
    assert os.listdir(tmp_path) == ["model"]
