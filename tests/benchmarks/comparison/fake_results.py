"""Made-up results of a comparison."""

from typing import Any

Errors = dict[str, dict[str, list[float | str]]]

MODEL_KINDS = {
    "MetricRegressor": "ours",
    "Packing": "paper",
    "KNN": "streaming",
    "LightGBM": "batch",
    "Last label": "trivial",
}


def fake_results(errors: Errors) -> dict[str, Any]:
    """Return results with these late errors, by stream, model and seed; a string is a failure."""

    def outcome(error: float | str) -> dict[str, Any]:
        if isinstance(error, str):
            return {"failed": error}
        costs = {"median_us": 10.0, "p99_us": 30.0, "mean_us": 20.0 / error, "peak_bytes": 5000, "saved_bytes": 700}
        return {"late_nrmse": error, "nrmse": 1.1 * error, "error_curve": [2 * error, error], **costs}

    machine = {"system": "Linux", "processor": "one", "cores": 2}
    return {
        "environment": {"date": "2026-01-01", "revision": "abc", "python": "3.11", **machine, "versions": {}},
        "command": "python -m benchmarks.comparison --rows 100",
        "rows": 100,
        "seeds": 2,
        "note": "Never run.",
        "learners": [{"name": name, "kind": kind, "settings": "defaults"} for name, kind in MODEL_KINDS.items()],
        "streams": [
            {"name": name, "description": "synthetic", "ours": name == "mine", "rows": 100, "features": 3}
            for name in errors
        ],
        "results": {
            stream: {name: {str(seed): outcome(each) for seed, each in enumerate(runs)} for name, runs in found.items()}
            for stream, found in errors.items()
        },
    }
