from pathlib import Path

from benchmarks.plotting import legend_line, panel_grid, save_figure, shared_legend, style_log_axes


def draw(path: Path, top: float) -> bytes:
    figure, (axes,) = panel_grid(1, 1)
    axes.plot([1, 10, 1e6], [0.5, 7, top], color="#0072B2")
    style_log_axes(axes, "a line", "across", "up")
    shared_legend(figure, [legend_line("#0072B2", "it")], 1)
    save_figure(figure, path)
    return path.read_bytes()


def test_the_same_data_give_the_same_bytes(tmp_path: Path) -> None:
    first = draw(tmp_path / "new" / "a.png", 9.0)
    assert first.startswith(b"\x89PNG")
    assert b"atplotlib" not in first
    assert draw(tmp_path / "b.png", 9.0) == first
    assert draw(tmp_path / "c.png", 5.0) != first
