from pathlib import Path

from benchmarks.plotting import grid, logarithmic, sample, save, shared_legend


def draw(path: Path, top: float) -> bytes:
    figure, (axes,) = grid(1, 1)
    axes.plot([1, 10, 1e6], [0.5, 7, top], color="#0072B2")
    logarithmic(axes, "a line", "across", "up")
    shared_legend(figure, [sample("#0072B2", "it")], 1)
    save(figure, path)
    return path.read_bytes()


def test_the_same_figures_give_the_same_bytes_and_others_do_not(tmp_path: Path) -> None:
    first = draw(tmp_path / "new" / "a.png", 9.0)
    assert first.startswith(b"\x89PNG")
    assert b"atplotlib" not in first
    assert draw(tmp_path / "b.png", 9.0) == first
    assert draw(tmp_path / "c.png", 5.0) != first
