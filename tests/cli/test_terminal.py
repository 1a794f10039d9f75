import re
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from ellipack import TableRegressor
from ellipack.cli import terminal
from ellipack.cli.terminal import ProgressLine, print_model, print_record
from ellipack.report.record import ColumnRecord, Experts
from tests.report import records

ESCAPE = "\x1b[31m"


def test_no_text_of_a_record_sends_escape_characters_to_the_terminal() -> None:
    record = records.full()
    hostile = replace(
        record,
        source=record.source + ESCAPE,
        target=record.target + ESCAPE,
        learner=record.learner + ESCAPE,
        parameters={ESCAPE + name: f"{value}{ESCAPE}" for name, value in record.parameters.items()},
        features=[name + ESCAPE for name in record.features],
        phases=[replace(phase, choice=phase.choice + ESCAPE) for phase in record.phases],
        experts=Experts([name + ESCAPE for name in record.experts.names], record.experts.weights),
        columns=[ColumnRecord(f"name{ESCAPE}", f"kind{ESCAPE}", f"note{ESCAPE}", 0)],
    )
    output = StringIO()
    print_model(hostile, Console(file=output, width=200, highlight=False, markup=False, emoji=False))
    assert "\x1b" not in output.getvalue()
    for text in ("name", "kind", "note"):
        assert f"{text}\ufffd[31m" in output.getvalue()


def test_a_narrow_terminal_shows_the_names_of_columns_beside_long_effects() -> None:
    record = records.full()
    assert record.importance is not None
    groups = [replace(each, effect="highest for one value, lowest for another") for each in record.importance.groups]
    output = StringIO()
    narrow = Console(file=output, width=80, highlight=False, markup=False, emoji=False)
    print_record(replace(record, importance=replace(record.importance, groups=groups)), narrow)
    table = output.getvalue().partition("What drives it")[2].partition("Leading directions")[0]
    for each in groups[:5]:
        assert f"│ {each.columns[0][:8]}" in table
    assert max(map(len, table.splitlines())) <= 80


def test_a_baseline_that_wins_is_named() -> None:
    record = records.full()
    output = StringIO()
    print_record(replace(record, summary=replace(record.summary, last_rmse=12.5)), Console(file=output, width=80))
    assert "Repeating the last label would be better: its RMSE is 12.5." in output.getvalue()


def test_a_past_that_hardly_matters_has_no_sign() -> None:
    record = records.full()
    output = StringIO()
    assert record.past is not None
    hardly = replace(record, past=replace(record.past, rmse_with=1.00001, rmse_without=1.0))
    print_record(hardly, Console(file=output, width=80))
    assert re.search(r"RMSE saved by the past +│ +0\.0% │", output.getvalue())


@pytest.mark.parametrize("name", ["wind", "a long name of a column that does not fit"])
def test_the_live_line_fits_a_narrow_terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    table = {name: rng.normal(size=600), "noise": rng.normal(size=600)}
    run = TableRegressor().fit(table, 1e5 * table[name]).run_
    output = StringIO()
    shown = Console(file=output, width=80, height=20, force_terminal=True, color_system=None)
    monkeypatch.setattr(terminal, "make_console", lambda **_: shown)
    monkeypatch.setattr(terminal, "monotonic", iter([0.0, 9.0]).__next__)
    with ProgressLine(run) as progress:
        progress.update()
        progress._progress.refresh()
    line = next(each for each in re.split(r"[\r\n]", output.getvalue()) if "rows/s" in each)
    assert re.search(r"600 rows 0:00:0\d 0 rows/s  RMSE \S+  skill [0-9.]+%  driven by (wind|a long.*…) \(100%\)", line)
    assert len(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line)) <= 80
