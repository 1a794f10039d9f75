from dataclasses import replace
from io import StringIO

from rich.console import Console

from ellipack.cli.terminal import print_model
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
