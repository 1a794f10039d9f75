"""Figures of a race that was never run."""

from typing import Any

Errors = dict[str, dict[str, list[float | str]]]

KINDS = {
    "MetricRegressor": "ours",
    "Packing": "paper",
    "KNN": "streaming",
    "LightGBM": "batch",
    "Last label": "trivial",
}


def made(errors: Errors) -> dict[str, Any]:
    """Return the figures of a race with these late errors, by stream, learner and seed; a text is a failure."""

    def outcome(error: float | str) -> dict[str, Any]:
        if isinstance(error, str):
            return {"failed": error}
        costs = {"median_us": 10.0, "p99_us": 30.0, "mean_us": 20.0 / error, "peak_bytes": 5000, "saved_bytes": 700}
        return {"late": error, "whole": 1.1 * error, "curve": [2 * error, error], **costs}

    machine = {"system": "Linux", "processor": "one", "cores": 2}
    return {
        "made": {"on": "2026-01-01", "revision": "abc", "python": "3.11", **machine, "versions": {}},
        "command": "python -m benchmarks.comparison --rows 100",
        "rows": 100,
        "seeds": 2,
        "note": "Nobody ran it.",
        "learners": [{"name": name, "kind": kind, "settings": "as it comes"} for name, kind in KINDS.items()],
        "streams": [
            {"name": name, "about": "made up", "ours": name == "mine", "rows": 100, "features": 3} for name in errors
        ],
        "results": {
            stream: {name: {str(seed): outcome(each) for seed, each in enumerate(runs)} for name, runs in found.items()}
            for stream, found in errors.items()
        },
    }
