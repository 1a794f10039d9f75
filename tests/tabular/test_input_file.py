from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.tabular.input_file import INVALID_UTF8, Utf8Reader


class ShortReads(BytesIO):
    """File whose reads return fewer bytes than requested."""

    def __init__(self, content: bytes, most: int) -> None:
        super().__init__(content)
        self.most = most

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size, self.most) if size is not None and size >= 0 else self.most)


@given(
    st.lists(st.sampled_from([b"a", b"\n", "é".encode(), "😀".encode(), b"\xff", b"\xe2\x82"]), max_size=60).map(
        b"".join
    ),
    st.integers(1, 9),
    st.lists(st.tuples(st.booleans(), st.integers(1, 20)), max_size=9),
)
def test_output_is_always_valid_utf8(content: bytes, most: int, calls: list[tuple[bool, int]]) -> None:
    stream = Utf8Reader(ShortReads(content, most), "it")
    out = b""
    for is_read, size in calls:
        seen = stream.peek(size)
        if is_read:
            assert stream.read(size) == seen
            out += seen
    out += stream.read()
    assert out.decode().replace(INVALID_UTF8, "") == content.decode(errors="ignore")
    try:
        content.decode()
        assert not stream.has_invalid_bytes
    except UnicodeDecodeError:
        assert stream.has_invalid_bytes
        assert INVALID_UTF8 in out.decode()
    assert stream.read(5) == b""


def test_byte_order_mark_is_removed() -> None:
    assert Utf8Reader(BytesIO(b"\xef\xbb\xbfabc"), "it").read() == b"abc"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("most", [1, 2, 3, 5, 1000])
def test_utf16_with_a_byte_order_mark_is_converted(encoding: str, most: int) -> None:
    text = "a,é,\U0001f600\n" + "1,2,3\n" * 50
    reader = Utf8Reader(ShortReads(f"\ufeff{text}".encode(encoding), most), "it")
    assert reader.peek(5) == text.encode()[:5]
    assert reader.read() == text.encode()
    assert not reader.has_invalid_bytes


def test_invalid_utf16_is_marked() -> None:
    reader = Utf8Reader(BytesIO("\ufeffab".encode("utf-16-le") + b"\x00\xd8c\x00" + b"x"), "it")
    assert reader.read().decode() == f"ab{INVALID_UTF8}c{INVALID_UTF8}"
    assert reader.has_invalid_bytes
