"""Print how good the measured importances are: ``python -m benchmarks.importance [PART ...]``."""

from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time_ns
from typing import NamedTuple

import numpy as np

from benchmarks.command_line import make_parser, require_positive, track_progress
from benchmarks.importance import tables
from benchmarks.importance.cases import CASES
from benchmarks.importance.generators import STREAMS, Stream
from ellipack import MetricRegressor
from ellipack.learners.metric.config import MetricConfig
from ellipack.validation import Floats

_CHUNK = 25  # rows that each learner learns in turn, when the cost is measured
_LARGE = 20_000  # rows of a table that fewer learners learn


class Size(NamedTuple):
    """How much is measured.

    Attributes
    ----------
    rows : int
        Rows of a stream.
    seeds : int
        Number of seeds, and of learners of a table.
    repeats : int
        Number of learners of a large table.
    runs : int
        Number of runs by which times are measured.
    data : Path or None
        Folder of further tables.
    table : str or None
        Name of the only table.
    """

    rows: int
    seeds: int
    repeats: int
    runs: int
    data: Path | None
    table: str | None


def measured_shares(stream: Stream, seed: int) -> tuple[Floats, Floats]:
    """Return the shares of the columns that a learner measures, and their standard errors."""
    learner = MetricRegressor(random_state=seed)
    if stream.columns is not None:
        learner.set_columns(stream.columns)
    importances = learner.fit(stream.X, stream.y).importances_
    assert importances is not None
    columns = list(dict.fromkeys(stream.columns or map(str, range(len(stream.shares)))))
    known = {each.columns[0]: each for each in importances.columns}
    found = [known[name] for name in columns]
    if stream.recent:
        return np.array([each.recent_share for each in found]), np.array([each.recent_share_std for each in found])
    return np.array([each.share for each in found]), np.array([each.share_std for each in found])


def measure_truth(size: Size) -> None:
    """Print the largest difference from the true shares, and how often the ranking is right."""
    print(f"Shares after {size.rows:,} rows, {size.seeds} seeds: largest difference from the truth, in points")
    for name, make in STREAMS.items():
        differences, deviations, right = [], [], 0
        for seed in track_progress([(name, seed) for seed in range(size.seeds)]):
            stream = make(np.random.default_rng(seed), size.rows)
            found, errors = measured_shares(stream, seed)
            found = np.nan_to_num(found)  # too early to say
            gaps = np.abs(found - stream.shares)
            differences.append(100 * np.max(gaps))
            deviations += (gaps[stream.shares > 0] / errors[stream.shares > 0]).tolist()
            right += ranks_right(found, stream.shares)
        print(
            f"  {name:12s} mean {np.mean(differences):4.1f}  largest {np.max(differences):4.1f}  "
            f"ranking right {right} of {size.seeds}  "
            f"in standard errors {np.sqrt(np.nanmean(np.square(deviations))):.1f}"
        )


def ranks_right(found: Floats, truth: Floats) -> bool:
    """Return whether every pair of different true shares has the right order."""
    return all(found[i] > found[j] for i in range(len(truth)) for j in range(len(truth)) if truth[i] > truth[j])


def measure_tables(size: Size) -> None:
    """Print the rises of columns beside those by permutation, and their rank correlations."""
    read = tables.known_tables(size.data)
    print(
        "Rise in squared error, all rows in random order: measured, permuted before learning, permuted in held-out "
        f"rows. Rank correlations are means of {size.seeds} learners with other random states, {size.repeats} if there "
        f"are more than {_LARGE:,} rows; the rises are those of the first. Learners take turns in which quarter of the "
        "rows is held out, at most 10,000 of them"
    )
    for name in track_progress([(name, name) for name in read if size.table in (None, name)]):
        table, target = read[name](tables.ALL_ROWS)
        found = tables.compare_with_permutation(table, target, size.repeats if len(table) > _LARGE else size.seeds)
        print(f"  {name}, rank correlations")
        for pair, correlation in found.rank_correlations().items():
            print(f"    {pair:26s} {correlation:5.2f}")
        right, count = found.ordered_pairs()
        print(f"    of the pairs that are two standard errors apart, {right} of {count} are in the order of held-out")
        held_out = found.held_out.mean(axis=0)
        for k, columns in enumerate(found.columns):
            print(
                f"    {columns:40s} {found.measured[0, k]:10.4g} +- {found.stds[0, k]:8.2g}  "
                f"{found.progressive[k]:10.4g}  {held_out[k]:10.4g}"
            )


def measure_orders(size: Size) -> None:
    """Print the share of carat and of its group over several orders of the diamonds."""
    shares = 100 * np.array(tables.shares_over_orders(2 * size.rows, size.seeds))
    print(f"Diamonds, {2 * size.rows:,} rows in {size.seeds} random orders, in points")
    for name, each in zip(
        ("share of carat", "share of its group", "rise of carat alone relative to that of its group"),
        shares.T,
        strict=True,
    ):
        print(f"  {name}: from {each.min():.1f} to {each.max():.1f}, standard deviation {each.std():.1f}")


def measure_cost(size: Size) -> None:
    """Print the processor time with measurements relative to that without, and the same by halves of the runs."""
    print(
        f"Time with measurements relative to without: median of {size.runs} runs for each {_CHUNK} rows (of each half)"
    )
    costs = []
    for name in track_progress([(name, name) for name in STREAMS]):
        stream = STREAMS[name](np.random.default_rng(0), size.rows)
        times = np.array([times_in_turn(stream, run) for run in range(size.runs)])
        costs.append([relative_cost(each) for each in (times, times[::2], times[1::2])])
        print_cost(name, costs[-1])
    print_cost("mean", np.mean(costs, axis=0))


def print_cost(name: str, costs: Sequence[float] | Floats) -> None:
    """Print a cost, and what it is in each half of the runs."""
    print(f"  {name:12s} {costs[0]:+.1%} ({costs[1]:+.1%}, {costs[2]:+.1%})")


def times_in_turn(stream: Stream, run: int) -> Floats:
    """Return the processor times without and with measurements, two rows with an entry per chunk.

    Both learners learn a chunk before the next one, so that what else the processor does slows both. The one that
    learns first finds other caches: they take turns in this, too.
    """
    learners = [MetricRegressor(n_jobs=1, config=MetricConfig(importance=on)) for on in (False, True)]
    starts = range(0, len(stream.y), _CHUNK)
    times = np.zeros((2, len(starts)))
    for chunk, start in enumerate(starts):
        rows = slice(start, start + _CHUNK)
        for on in ((0, 1), (1, 0))[(run + chunk) % 2]:
            before = process_time_ns()
            learners[on].partial_fit(stream.X[rows], stream.y[rows])
            times[on, chunk] = process_time_ns() - before
    return times


def relative_cost(times: Floats) -> float:
    """Return the cost of measurements by times of shape (runs, 2, chunks).

    The median over the runs varies half as much as the least time if the processor has much else to do.
    """
    without, with_measurements = np.median(times, axis=0).sum(axis=1)
    return float(with_measurements / without - 1)


def measure_cases(size: Size) -> None:
    """Print what drives it on tables with growing time and late features."""
    for name, describe in CASES.items():
        print(name)
        for line in describe(size.rows):
            print(f"  {line}")


PARTS: dict[str, Callable[[Size], None]] = {
    "truth": measure_truth,
    "tables": measure_tables,
    "orders": measure_orders,
    "cases": measure_cases,
    "cost": measure_cost,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = make_parser("importance", "Measure how good the importances of columns are, and what they cost.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"what to measure, of {', '.join(PARTS)}")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=3, help="learners of a large table")
    parser.add_argument("--runs", type=int, default=20, help="runs by which times are measured")
    parser.add_argument("--data", type=Path, help="folder of further tables, CSV files with the target as last column")
    parser.add_argument("--table", help="name of the only table")
    options = parser.parse_args(arguments)
    require_positive(parser, options, "seeds", "rows", "repeats")
    if options.runs < 2:
        parser.error(f"--runs must be at least 2, got {options.runs}")
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"PART must be one of {', '.join(PARTS)}, got {unknown[0]}")
    if options.data is not None and not options.data.is_dir():
        parser.error(f"--data must be a folder, got {options.data}")
    if options.table not in (None, *tables.known_tables(options.data)):
        parser.error(f"--table must be one of {', '.join(tables.known_tables(options.data))}, got {options.table}")
    size = Size(options.rows, options.seeds, options.repeats, options.runs, options.data, options.table)
    for part in options.parts or PARTS:
        PARTS[part](size)


if __name__ == "__main__":
    main()
