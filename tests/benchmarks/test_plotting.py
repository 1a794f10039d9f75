from pathlib import Path

import pytest

from benchmarks.plotting import legend_line, panel_grid, save_figure, shared_legend, style_log_axes


def draw(path: Path, top: float) -> bytes:
    figure, (axes,) = panel_grid(1, 1)
    axes.plot([1, 10, 1e6], [0.5, 7, top], color="#0072B2")
    style_log_axes(axes, "a line", "across", "up")
    shared_legend(figure, [legend_line("#0072B2", "it")], 1)
    save_figure(figure, path)
    return path.read_bytes()


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_the_same_data_give_the_same_bytes(suffix: str, start: bytes, tmp_path: Path) -> None:
    first = draw(tmp_path / "new" / f"a.{suffix}", 9.0)
    assert first.startswith(start)
    assert b"Matplotlib" not in first
    assert draw(tmp_path / f"b.{suffix}", 9.0) == first
    assert draw(tmp_path / f"c.{suffix}", 5.0) != first


def test_the_text_of_a_vector_graphic_is_text(tmp_path: Path) -> None:
    assert b">a line</text>" in draw(tmp_path / "a.svg", 9.0)
