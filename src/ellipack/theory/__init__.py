"""Quantities and bounds of the paper, in plain NumPy and without state.

The names of the paper's symbols, and the errata that the docstrings cite, are in ``docs/paper.md``.

References
----------
.. [1] I. Kuzborskij and N. Cesa-Bianchi. Nonparametric Online Regression while Learning the Metric. NeurIPS 2017.
"""

from ellipack.theory.assumptions import Assumption1, examine_assumption_1, mass_constant
from ellipack.theory.fixed_metric import (
    fixed_metric_regret_bound,
    phase_regret_bound,
    phased_regret_bound,
    printed_fixed_metric_regret_bound,
    printed_phase_regret_bound,
    sharp_fixed_metric_regret_bound,
)
from ellipack.theory.learned_metric import (
    learned_metric_regret_bound,
    printed_learned_metric_rate,
    printed_learned_metric_regret_bound,
    printed_learned_phase_bound,
    sharp_learned_metric_regret_bound,
)
from ellipack.theory.lipschitz import directional_lipschitz, lipschitz_constant, subspace_lipschitz
from ellipack.theory.manifolds import (
    manifold_center_bound,
    manifold_noisy_regret_bound,
    manifold_regret_bound,
)
from ellipack.theory.mistakes import mistake_bound, mistake_certificate
from ellipack.theory.packing_bounds import (
    center_bound,
    determinant_center_bound,
    ellipsoid_packing_bound,
    packing_bound,
    printed_ellipsoid_packing_bound,
    relative_spectrum,
    volumetric_packing_bound,
)
from ellipack.theory.packings import (
    covering_number,
    largest_packing,
    packing_number,
    pairwise_distances,
    smallest_cover,
)
from ellipack.theory.perturbation import (
    eigenvalue_errors,
    first_order_rotation,
    outer_product_error,
    rotated_lipschitz,
    rotation_bound,
    rotation_sines,
    scaled_eigenvalue,
    scaled_eigenvalue_slope,
)
from ellipack.theory.prunings import pruning_certificate, pruning_regret_bound
from ellipack.theory.regret import ball_excess, estimation_bound, minimax_exponent, regret, regret_exponent
from ellipack.theory.schedules import (
    bandwidth,
    bandwidth_limits,
    burn_in,
    mass_threshold,
    phase_end,
    phase_length,
    phase_of,
    printed_burn_in,
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
    "Assumption1",
    "ball_excess",
    "bandwidth",
    "bandwidth_limits",
    "burn_in",
    "center_bound",
    "check_semidefinite_spectrum",
    "covering_number",
    "determinant_center_bound",
    "directional_lipschitz",
    "effective_rank",
    "eigenvalue_errors",
    "eigenvalue_gaps",
    "ellipsoid_packing_bound",
    "estimation_bound",
    "examine_assumption_1",
    "first_order_rotation",
    "fixed_metric_regret_bound",
    "kappa",
    "largest_packing",
    "learned_metric_regret_bound",
    "lipschitz_constant",
    "manifold_center_bound",
    "manifold_noisy_regret_bound",
    "manifold_regret_bound",
    "mass_constant",
    "mass_threshold",
    "minimax_exponent",
    "mistake_bound",
    "mistake_certificate",
    "outer_product_error",
    "packing_bound",
    "packing_number",
    "pairwise_distances",
    "perturbed_effective_rank",
    "perturbed_kappa",
    "phase_end",
    "phase_length",
    "phase_of",
    "phase_regret_bound",
    "phased_regret_bound",
    "printed_burn_in",
    "printed_ellipsoid_packing_bound",
    "printed_fixed_metric_regret_bound",
    "printed_learned_metric_rate",
    "printed_learned_metric_regret_bound",
    "printed_learned_phase_bound",
    "printed_phase_regret_bound",
    "pruning_certificate",
    "pruning_regret_bound",
    "radius",
    "rank_starts",
    "regret",
    "regret_exponent",
    "regularization",
    "relative_spectrum",
    "rotated_lipschitz",
    "rotation_bound",
    "rotation_sines",
    "scaled_eigenvalue",
    "scaled_eigenvalue_slope",
    "separated",
    "sharp_fixed_metric_regret_bound",
    "sharp_learned_metric_regret_bound",
    "smallest_cover",
    "smallest_radius",
    "step",
    "subspace_lipschitz",
    "truncated_determinant",
    "volumetric_packing_bound",
]
