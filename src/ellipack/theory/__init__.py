"""Quantities and bounds of the paper, in plain NumPy and without state.

The names of the paper's symbols, and the errata that the docstrings cite, are in ``docs/paper.md``.

References
----------
.. [1] I. Kuzborskij and N. Cesa-Bianchi. Nonparametric Online Regression while Learning the Metric. NeurIPS 2017.
"""

from ellipack.theory.bounds import (
    directional_lipschitz,
    ellipsoid_packing_bound,
    fixed_metric_regret_bound,
    learned_metric_regret_bound,
    lipschitz_constant,
    phase_regret_bound,
    phased_regret_bound,
    printed_ellipsoid_packing_bound,
    printed_fixed_metric_regret_bound,
    printed_phase_regret_bound,
    volumetric_packing_bound,
)
from ellipack.theory.mistakes import mistake_bound, mistake_certificate
from ellipack.theory.schedules import (
    bandwidth,
    bandwidth_limits,
    burn_in,
    mass_threshold,
    phase_end,
    phase_length,
    phase_of,
    radius,
    regularization,
    smallest_radius,
    step,
)
from ellipack.theory.spectrum import (
    check_semidefinite_spectrum,
    effective_rank,
    eigenvalue_gaps,
    kappa,
    perturbed_effective_rank,
    perturbed_kappa,
    rank_starts,
    separated,
    truncated_determinant,
)

__all__ = [
    "bandwidth",
    "bandwidth_limits",
    "burn_in",
    "check_semidefinite_spectrum",
    "directional_lipschitz",
    "effective_rank",
    "eigenvalue_gaps",
    "ellipsoid_packing_bound",
    "fixed_metric_regret_bound",
    "kappa",
    "learned_metric_regret_bound",
    "lipschitz_constant",
    "mass_threshold",
    "mistake_bound",
    "mistake_certificate",
    "perturbed_effective_rank",
    "perturbed_kappa",
    "phase_end",
    "phase_length",
    "phase_of",
    "phase_regret_bound",
    "phased_regret_bound",
    "printed_ellipsoid_packing_bound",
    "printed_fixed_metric_regret_bound",
    "printed_phase_regret_bound",
    "radius",
    "rank_starts",
    "regularization",
    "separated",
    "smallest_radius",
    "step",
    "truncated_determinant",
    "volumetric_packing_bound",
]
