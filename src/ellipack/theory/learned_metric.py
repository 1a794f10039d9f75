"""Theorem 2: the regret of the phased algorithm, whose metric is learned.

There are three versions. Functions with the prefix ``printed_`` compute what the paper prints, with the constants of
its proof. `learned_metric_regret_bound` is the theorem as it can be proved. The function with the prefix ``sharp_`` has
smaller constants, and takes measured errors of the metric.
"""

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import DomainError
from ellipack.theory.fixed_metric import cost_per_center
from ellipack.theory.lipschitz import check_vector, directional_lipschitz, lipschitz_constant, subspace_lipschitz
from ellipack.theory.packing_bounds import finite_exp, packing_bound
from ellipack.theory.perturbation import rotated_lipschitz
from ellipack.theory.regret import regret_exponent
from ellipack.theory.schedules import (
    burn_in,
    phase_end,
    phase_length,
    phase_of,
    printed_burn_in,
    regularization,
    smallest_radius,
)
from ellipack.theory.spectrum import check_semidefinite_spectrum, effective_rank, perturbed_effective_rank, separated
from ellipack.validation import Floats, as_floats, check_finite, check_integer, check_rows

_THEOREM_2 = 12  # 8 sqrt(2), rounded up in the paper


def learned_metric_regret_bound(
    eigenvalues: ArrayLike, rounds: int, *, alpha: float, delta: float, directions: ArrayLike, gradients: ArrayLike
) -> float:
    """Return the bound of Theorem 2: the bound on a single phase in its proof, summed over the phases.

    The bound holds if ``gamma-bar_t >= gamma_t``, the error of the estimated outer product, from `burn_in` on. It drops
    no terms: see `rotated_lipschitz`. The constant is ``12**d``, as in the last display of the proof, which errata 5
    and 6 require. Each phase has its own rank, which `burn_in` keeps below that of the horizon (erratum 9). Rounds up
    to the end of the first phase past `burn_in` cost at most 1 each (erratum 7). If ``mu_d`` is 0, no phase is past it
    and the bound is `rounds`; `sharp_learned_metric_regret_bound` covers that case, too.

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues of the expected gradient outer product in descending order.
    rounds : int
        Number of rounds.
    alpha : float
        Exponent of the regularization.
    delta : float
        Eigenvectors whose eigenvalues are closer than this count as not identifiable: the ``V_Delta`` term.
    directions : array-like of shape (d, d)
        Eigenvectors of the expected gradient outer product, one per column.
    gradients : array-like of shape (n, d)
        Sample of true gradients, one per row. Suprema are taken over this sample, so that they, and the bound, may come
        out too small.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> gradients = [[1.0, 0.0], [0.0, 0.0]]
    >>> bound = learned_metric_regret_bound
    >>> bound([0.5, 0.0], 100, alpha=0.5, delta=0.1, directions=np.eye(2), gradients=gradients)
    100.0
    """
    mu, last = check_semidefinite_spectrum(eigenvalues), check_integer(rounds, "rounds", 1)
    known = {"delta": delta, "directions": directions, "gradients": check_rows(gradients, len(mu), "gradients")}
    first = _first_phase_after(burn_in(mu[-1], len(mu), alpha), last)
    total = float(min(last, phase_end(first)))
    for i, length in _later_phases(first, last):
        gamma = regularization(phase_end(i), alpha)
        along = rotated_lipschitz(mu, gamma, **known)  # type: ignore[arg-type]
        spread = np.sqrt((mu[0] + 2 * gamma) * np.sum(along**2 / mu))
        per_rate = cost_per_center(length) * _constant(len(mu)) + 4 * spread
        total += float(per_rate * length ** regret_exponent(perturbed_effective_rank(mu, length, gamma)))
    return total


def sharp_learned_metric_regret_bound(
    eigenvalues: ArrayLike,
    rounds: int,
    *,
    alpha: float,
    delta: float,
    directions: ArrayLike,
    gradients: ArrayLike,
    errors: ArrayLike | None = None,
) -> float:
    """Return a sharper bound than Theorem 2 on the same regret, from the errors of the estimated outer products.

    Phase i + 1 uses a metric with eigenvalues ``mu-hat_j + gamma-bar``, where ``mu-hat_j`` is in the interval from
    ``max(mu_j - gamma, 0)`` to ``mu_j + gamma``. The normalized eigenvalues are then in known intervals. The number of
    centers, the effective rank and the radius are monotone in them, so that `sharp_fixed_metric_regret_bound` can be
    evaluated at their worst. A phase costs no more than 1 in a round. No burn-in is needed, and ``mu_d`` may be 0: the
    regularization keeps every eigenvalue of the metric above 0.

    Parameters
    ----------
    eigenvalues, rounds, alpha, delta, directions, gradients
        As in `learned_metric_regret_bound`.
    errors : array-like of shape (n_phases,), optional
        Error ``gamma`` at the end of phases 1, 2, and so on, at least of all that end before `rounds`; see
        `outer_product_error`. By default it is the regularization, the largest error that Theorem 2 allows.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> known = {"alpha": 0.5, "delta": 0.25, "directions": np.eye(2), "gradients": [[0.2, 0.0], [0.0, 0.1]]}
    >>> round(sharp_learned_metric_regret_bound([0.04, 0.0], 100, **known))
    100
    >>> bound = sharp_learned_metric_regret_bound([0.5, 0.25], 2**20, **known)
    >>> bound < 2**20 < learned_metric_regret_bound([0.5, 0.25], 2**20, **known)
    True
    """
    mu, last = check_semidefinite_spectrum(eigenvalues), check_integer(rounds, "rounds", 1)
    finished = phase_of(last) - 1
    ridges = np.array([regularization(phase_end(i), alpha) for i in range(1, finished + 1)])
    gammas = _check_errors(errors, finished, ridges)
    known = {"delta": delta, "directions": directions, "gradients": check_rows(gradients, len(mu), "gradients")}
    total = float(min(last, phase_end(1)))
    for i, length in _later_phases(1, last):
        gamma, ridge = float(gammas[i - 1]), float(ridges[i - 1])
        along = rotated_lipschitz(mu, gamma, **known)  # type: ignore[arg-type]
        total += min(float(length), _sharp_phase_bound(mu, (gamma, ridge), length, along))
    return total


def _sharp_phase_bound(mu: Floats, error_and_ridge: tuple[float, float], length: int, along: Floats) -> float:
    """Return the bound of a phase in a metric whose eigenvalues are known up to an error."""
    gamma, ridge = error_and_ridge
    smallest, largest = np.maximum(mu - gamma, 0.0) + ridge, mu + gamma + ridge
    low = np.append(1.0, np.minimum(smallest / largest[0], 1.0)[1:])
    high = np.append(1.0, np.minimum(largest / smallest[0], 1.0)[1:])
    centers = min(packing_bound(high, smallest_radius(low, length)), float(length))
    rank = int(effective_rank(high, length))
    lipschitz = lipschitz_constant(smallest / largest[0], along)
    approximation = 2 * lipschitz * (1 + 1 / rank) * length ** regret_exponent(rank)
    return float(centers * np.log(np.e * length / centers) + approximation)


def printed_learned_phase_bound(
    eigenvalues: ArrayLike, phase: int, rounds: int, *, alpha: float, directional: ArrayLike
) -> float:
    """Return the bound on the regret of one phase as printed in eq. newPhase.

    It is ``(8 ln(e 2**(i+1)) 12**rho + 4 sqrt((mu_1 + 2 gamma-bar(i)) sum_j |grad_(u-hat_j) f|**2 / mu_j))
    2**((i+1) rho/(1+rho))`` for phase i + 1, where rho is rho-tilde at the horizon. Errata 5, 6 and 9 correct it.

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues of the expected gradient outer product in descending order, above 0.
    phase : int
        Number of the phase, at least 2.
    rounds : int
        The horizon T.
    alpha : float
        Exponent of the regularization.
    directional : array-like of shape (d,)
        Largest derivative along each eigenvector of the estimate.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> round(printed_learned_phase_bound([1.0], 2, rounds=6, alpha=1.0, directional=[0.5]), 3)
    463.825
    """
    mu, horizon = _check_positive_spectrum(eigenvalues), check_integer(rounds, "rounds", 1)
    along = check_vector(directional, len(mu), "directional")
    gamma = regularization(phase_end(check_integer(phase, "phase", 2) - 1), alpha)
    rank = perturbed_effective_rank(mu, horizon, regularization(horizon, alpha))
    spread = np.sqrt((mu[0] + 2 * gamma) * np.sum(along**2 / mu))
    length = phase_length(phase)
    return float((cost_per_center(length) * _constant(rank) + 4 * spread) * length ** regret_exponent(rank))


def printed_learned_metric_regret_bound(
    eigenvalues: ArrayLike, rounds: int, *, alpha: float, delta: float, directions: ArrayLike, gradients: ArrayLike
) -> float:
    """Return the bound of Theorem 2 with the constants of its proof: eq. newPhase, summed over the phases.

    The derivatives along estimated eigenvectors are those of eq. convergence_on_directional_lipschitz, without the
    terms of order ``gamma**2``, for which the paper gives no constants. See `learned_metric_regret_bound` for the
    parameters; here ``mu_d`` must be above 0.
    """
    mu, last = _check_positive_spectrum(eigenvalues), check_integer(rounds, "rounds", 1)
    basis, known = check_rows(directions, len(mu), "directions"), separated(mu, delta)
    along = directional_lipschitz(gradients, basis)
    sup_known, sup_unknown = (subspace_lipschitz(gradients, basis[:, each]) for each in (known, ~known))
    condition = printed_burn_in(mu[-1], len(mu), alpha)
    total = min(float(last), condition)
    for i, _ in _later_phases(_first_phase_after(condition, last), last):
        gamma = regularization(phase_end(i), alpha)
        rotation = np.sqrt(len(mu)) * (2 * gamma / delta * sup_known + 2 * sup_unknown)
        total += printed_learned_phase_bound(mu, i + 1, last, alpha=alpha, directional=along + rotation)
    return total


def printed_learned_metric_rate(
    eigenvalues: ArrayLike, rounds: int, *, alpha: float, delta: float, directions: ArrayLike, gradients: ArrayLike
) -> float:
    """Return the expression in the statement of Theorem 2, without constants and logarithms.

    It is ``(1 + sqrt(sum_j (|grad_(u_j) f| + |grad_W f|)**2 / (mu_j / mu_1))) T**(rho/(1+rho))``, where W are the
    directions that are not identifiable and rho is rho-tilde. The last display of the proof lacks the root (erratum
    10). See `learned_metric_regret_bound` for the parameters; here ``mu_d`` must be above 0.

    Examples
    --------
    >>> known = {"alpha": 1.0, "delta": 0.5, "directions": np.eye(1), "gradients": [[3.0]]}
    >>> printed_learned_metric_rate([2.0], 100, **known)
    40.0
    """
    mu, last = _check_positive_spectrum(eigenvalues), check_integer(rounds, "rounds", 1)
    basis, known = check_rows(directions, len(mu), "directions"), separated(mu, delta)
    along = directional_lipschitz(gradients, basis) + subspace_lipschitz(gradients, basis[:, ~known])
    rank = perturbed_effective_rank(mu, last, regularization(last, alpha))
    return float((1 + lipschitz_constant(mu / mu[0], along)) * last ** regret_exponent(rank))


def _first_phase_after(condition: float, rounds: int) -> int:
    """Return the first phase whose end meets a condition, or that of the last round if no phase before it does."""
    last = phase_of(rounds)
    return next((i for i in range(1, last) if phase_end(i) >= condition), last)


def _later_phases(first: int, rounds: int) -> list[tuple[int, int]]:
    """Return, for each phase i + 1 after `first`, i and the number of its rounds up to `rounds`."""
    return [(i, min(phase_length(i + 1), rounds - phase_end(i))) for i in range(first, phase_of(rounds))]


def _constant(exponent: int) -> float:
    """Return a power of 12."""
    return finite_exp(exponent * float(np.log(_THEOREM_2)))


def _check_positive_spectrum(eigenvalues: ArrayLike) -> Floats:
    """Return the spectrum of a gradient outer product whose eigenvalues are all above 0."""
    mu = check_semidefinite_spectrum(eigenvalues)
    if mu[-1] <= 0:
        raise DomainError(f"eigenvalues must be > 0, as Theorem 2 assumes, got {mu}")
    return mu


def _check_errors(errors: ArrayLike | None, finished: int, ridges: Floats) -> Floats:
    """Return the error at the end of each finished phase."""
    if errors is None:
        return ridges
    array = check_finite(as_floats(errors, "errors"), "errors")
    if array.ndim != 1 or len(array) < finished or np.any(array < 0):
        raise DomainError(f"errors must be >= 0, at least {finished} of them, got {array}")
    return array
