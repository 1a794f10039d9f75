from dataclasses import replace
from io import StringIO

from rich.console import Console

from ellipack.cli.terminal import print_model, print_record
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
