"""What a race came to, in a terminal."""

import math

from rich.table import Table

from benchmarks.race.learners import OURS
from benchmarks.race.standings import PEERS, Standings, Tally
from benchmarks.verdicts import figures


def errors_table(standings: Standings) -> Table:
    """Lay out late errors, a learner a row; green the least of a stream."""
    table = figures("Late NRMSE, mean over seeds", ("learner", *standings.streams, "us a round"))
    best = {stream: standings.best(stream, standings.learners) for stream in standings.streams}
    for learner in standings.learners:
        cells = []
        for stream in standings.streams:
            error = standings.mean(stream, learner)
            shown = "failed" if math.isnan(error) else f"{error:.3f}" if error < 1000 else f"{error:.1g}"
            cells.append(f"[green]{shown}[/green]" if best[stream] == learner else shown)
        style = "bold" if standings.kinds[learner] == OURS else None
        table.add_row(learner, *cells, f"{standings.typical(learner, 'mean_us'):,.0f}", style=style)
    return table


def tallies_table(standings: Standings) -> Table:
    """Lay out wins and losses, a peer a row, the best of each stream first."""
    table = figures("MetricRegressor against", ("peer", "won", "lost", "its error over theirs"))
    for group in PEERS:
        table.add_row(f"the best {group} peer", *_cells(standings.against_best(group)), style="bold")
    for peer in standings.peers:
        table.add_row(peer, *_cells(standings.against(peer)))
    return table


def _cells(tally: Tally) -> tuple[str, str, str]:
    lost = f"[red]{tally.lost}[/red]" if tally.lost else "0"
    return str(tally.won), lost, "-" if math.isnan(tally.mean) else f"{tally.mean:.3f}"
