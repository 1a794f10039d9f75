import re
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks import rank_figure
from ellipack.theory import effective_rank

ROOT = Path(__file__).parents[2]


def test_the_committed_figure_is_up_to_date(tmp_path: Path) -> None:
    rank_figure.main(["--figure", str(tmp_path / "figure.svg")])
    # The outlines depend on the version of Matplotlib, the texts and the number of points do not.
    drawn, committed = (
        (folder / name).read_text(encoding="utf-8")
        for folder, name in ((tmp_path, "figure.svg"), (ROOT, rank_figure.FIGURE))
    )
    assert [each.count("L ") for each in (drawn, committed)] == [committed.count("L ")] * 2
    assert re.findall(">([^<]+)</text>", drawn) == re.findall(">([^<]+)</text>", committed)
    assert len(committed) < 50_000


def test_steeper_spectra_have_smaller_ranks() -> None:
    rounds = np.unique(np.geomspace(1, rank_figure.LAST, 200).astype(np.int64))
    ranks = [effective_rank(each, rounds) for each in rank_figure.spectra().values()]
    assert np.all(ranks[0] == rank_figure.D)
    for flat, steep in pairwise(ranks[:-1]):
        assert np.all(flat >= steep)
        assert np.any(flat > steep)
