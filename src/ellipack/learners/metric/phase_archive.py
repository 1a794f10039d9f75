"""Archive of the summaries of finished phases."""

from collections.abc import Sequence

import numpy as np

from ellipack.errors import ModelFileError
from ellipack.learners.metric.experts import expert_names
from ellipack.learners.metric.state import PhaseSummary
from ellipack.serialization import Archive
from ellipack.validation import Floats

_MAX_PHASES = 10_000
_MAX_ROUNDING = 1e-6  # of proportions, which must add up to 1
_NUMBERS = "number", "end", "n_centers"
_VECTORS = "eigenvalues", "feature_weights", "expert_weights"


def phases_to_archive(phases: Sequence[PhaseSummary], d: int, views: int) -> Archive:
    """Return an archive of summaries, whose arrays have one entry or row for each phase."""
    widths = dict(zip(_VECTORS, (d, d, len(expert_names(views))), strict=True))
    facts = {name: [list(getattr(each, name)) for each in phases] for name in ("choices", "past_choices")}
    arrays = {name: np.array([getattr(each, name) for each in phases], dtype=np.int64) for name in _NUMBERS}
    vectors = {
        name: np.array([getattr(each, name) for each in phases], dtype=np.float64).reshape(-1, width)
        for name, width in widths.items()
    }
    return Archive(facts, {**arrays, **vectors})


def phases_from_archive(saved: Archive, d: int, views: int) -> tuple[PhaseSummary, ...]:
    """Restore summaries.

    Parameters
    ----------
    saved : Archive
        The archive.
    d : int
        Number of features.
    views : int
        Number of views.

    Returns
    -------
    phases : tuple of PhaseSummary

    Raises
    ------
    ModelFileError
        If the archive is not valid.
    """
    count = saved.shape("number", 1)[0]
    if count > _MAX_PHASES:
        raise ModelFileError(f"{saved.prefix}number must have at most {_MAX_PHASES:,} entries, got {count:,}")
    feature_weights = saved.floats_between(0.0, 2.0, "feature_weights", count, d)
    if not feature_weights.any(axis=1).all():
        raise ModelFileError(f"{saved.prefix}feature_weights of a phase must not all be 0")
    columns = (
        saved.ints("number", count, least=1).tolist(),
        saved.ints("end", count, least=1).tolist(),
        saved.ints("n_centers", count).tolist(),
        _restore_eigenvalues(saved, count, d),
        feature_weights,
        _restore_choices(saved, "choices", count, views),
        _restore_expert_weights(saved, count, views),
        _restore_choices(saved, "past_choices", count, None),
    )
    return tuple(map(PhaseSummary, *columns))


def _restore_eigenvalues(saved: Archive, count: int, d: int) -> Floats:
    """Restore the eigenvalues of the metric of each phase."""
    eigenvalues = saved.floats_between(0.0, 1.0, "eigenvalues", count, d)
    if (eigenvalues[:, 0] != 1).any() or (np.diff(eigenvalues) > 0).any():
        raise ModelFileError(f"{saved.prefix}eigenvalues of a phase must be in descending order and start with 1")
    return eigenvalues


def _restore_expert_weights(saved: Archive, count: int, views: int) -> Floats:
    """Restore the weights of the experts at the end of each phase."""
    weights = saved.floats_between(0.0, 1.0, "expert_weights", count, len(expert_names(views)))
    totals = weights.sum(axis=1)
    if (abs(totals - 1) > _MAX_ROUNDING).any():
        raise ModelFileError(f"{saved.prefix}expert_weights of a phase must add up to 1, got {totals.tolist()}")
    return weights


def _restore_choices(saved: Archive, name: str, count: int, views: int | None) -> list[tuple[str, ...]]:
    """Restore the names of the candidates that were selected at the end of each phase, one for each view if given."""
    listed = Archive({str(i): each for i, each in enumerate(saved.fact(name, list))}, prefix=f"{saved.prefix}{name}/")
    if len(listed.facts) != count:
        raise ModelFileError(f"{saved.prefix}{name} must have an entry for each of {count} phases")
    return [tuple(listed.strings(str(i), views)) for i in range(count)]
