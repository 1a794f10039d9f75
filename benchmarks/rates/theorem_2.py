"""Theorem 2 on a stream with ``mu_d > 0``: the measured error of the metric, the regret, and the bounds."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.command_line import run_cases
from benchmarks.rates.growth import split_at
from benchmarks.rates.metrics import GrowingSlopes
from benchmarks.rates.streams import CosineStream, draw_ball
from ellipack import GradientOuterProduct, PhasedRegressor
from ellipack.theory import (
    burn_in,
    learned_metric_regret_bound,
    outer_product_error,
    phase_end,
    phase_of,
    printed_burn_in,
    regularization,
    sharp_learned_metric_regret_bound,
)

ALPHA, DELTA = 0.3, 0.25
"""Exponent of the regularization, and the gap between eigenvalues from which eigenvectors count as identifiable."""

AMPLITUDES, NOISE = (0.3, 0.15), 0.04
_NEIGHBORS = 0.55  # exponent of the number of neighbors
_ANCHORS = 16_384
_GRADIENTS = 10_000  # sample for the suprema


def measure(rounds: int, seeds: int, jobs: int = 1) -> dict[str, Any]:
    """Run the phased algorithm over whole phases, at most `rounds`, for each seed."""
    phases = phase_of(rounds + 1) - 1
    cases = [(f"Theorem 2, seed {seed}", CosineStream(AMPLITUDES, NOISE, seed)) for seed in range(seeds)]
    runs = run_cases(partial(measure_run, phases=phases), cases, jobs)
    mu = np.diag(CosineStream(AMPLITUDES, NOISE, 0).gop())
    conditions = {
        "burn_in": burn_in(float(mu[-1]), len(mu), ALPHA),
        "printed_burn_in": printed_burn_in(float(mu[-1]), len(mu), ALPHA),
    }
    return {"alpha": ALPHA, "delta": DELTA, "mu": mu.tolist(), **conditions, "runs": runs}


def measure_run(stream: CosineStream, phases: int) -> dict[str, Any]:
    """Return the error of the metric, the regret and the bounds at the end of each phase."""
    ends = [phase_end(i) for i in range(1, phases + 1)]
    estimator = GradientOuterProduct(GrowingSlopes(_NEIGHBORS), anchors=_ANCHORS)
    learner, total, regret = PhasedRegressor(alpha=ALPHA, gop=estimator), 0.0, []
    for end, part in split_at(stream, ends):
        total += float(np.sum((learner.progressive(part.X, part.y) - part.y) ** 2 - (part.f - part.y) ** 2))
        if end in ends:
            regret.append(total)
    truth = stream.gop()
    errors = [outer_product_error(phase.gop, truth) for phase in learner.state_.phases]
    gradients = stream.gradients(draw_ball(np.random.default_rng(0), _GRADIENTS, stream.d))
    known: dict[str, Any] = {"alpha": ALPHA, "delta": DELTA, "directions": np.eye(stream.d), "gradients": gradients}
    mu = np.diag(truth)
    return {
        "seed": stream.seed,
        "rounds": ends,
        "regret": regret,
        "error": errors,
        "regularization": [regularization(end, ALPHA) for end in ends],
        "centers": [phase.n_centers for phase in learner.state_.phases],
        "rank": [phase.effective_rank for phase in learner.state_.phases],
        "sharp": [sharp_learned_metric_regret_bound(mu, end, errors=errors, **known) for end in ends],
        "proved": [learned_metric_regret_bound(mu, end, **known) for end in ends],
    }
