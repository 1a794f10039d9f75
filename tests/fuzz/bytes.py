"""Files with some of their bytes changed: what hypothesis draws for the fuzzers of tables."""

from hypothesis import strategies as st

TELLING = [b'"', b"\n", b"\r", b",", b"\0", b"\xff", b"\xef\xbb\xbf", b"{", b"}", b"nan", b"-inf", b"1e999", b"\t"]
"""Bytes that mean something somewhere."""


@st.composite
def mutations(draw: st.DrawFn, content: bytes) -> bytes:
    """Draw a content that was changed in one to six places."""
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, len(changed)))
        change = draw(st.sampled_from(["set", "insert", "cut", "copy"]))
        piece = draw(st.binary(max_size=4) | st.sampled_from(TELLING))
        if change == "set":
            changed[place : place + len(piece)] = piece
        elif change == "insert":
            changed[place:place] = piece
        elif change == "cut":
            del changed[place : place + draw(st.integers(0, 200))]
        else:
            changed[place:place] = changed[place // 2 : place]
    return bytes(changed)
