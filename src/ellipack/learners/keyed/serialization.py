"""Archives of the state of `KeyedRegressor`.

The learner of each key is an array of bytes, a packed learner with a checksum of its own. The checksum is verified when
the archive is read; everything else when the learner is used for the first time, because thousands of learners would
take minutes.
"""

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellipack.errors import DomainError, ModelFileError
from ellipack.learners.keyed.key_learner import KeySettings
from ellipack.learners.keyed.learner import KeyedState, KeyRecord
from ellipack.learners.keyed.store import LearnerStore
from ellipack.learners.metric import serialization
from ellipack.learners.metric.initial_state import MAX_SEED, LearnerSize
from ellipack.serialization import Archive, verify
from ellipack.validation import MAX_ABS_LABEL

_MAX_SQUARE = 4 * MAX_ABS_LABEL**2  # of an error


def to_archive(state: KeyedState) -> Archive:
    """Return an archive of a state. Keys are in ascending order, so that equal states have equal archives."""
    with state.lock.turn:
        state.complete_batch()
        keys = sorted(state.records)
        records = [state.records[key] for key in keys]
        packed = [np.frombuffer(state.store.pack(key), np.uint8) for key in keys]
        pooled, added_scales = serialization.to_archive(state.pooled), state.added_scales
    errors = np.array([(each.squared_error, each.pooled_error) for each in records]).reshape(len(keys), 2)
    arrays: dict[str, NDArray[Any]] = {f"learner{i}": each for i, each in enumerate(packed)}
    arrays |= {
        "keys": np.array(keys, dtype=np.int64),
        "rows": np.array([each.rows for each in records], dtype=np.int64),
        "errors": errors,
        "added_scales": added_scales,
    }
    return Archive({"names": [each.name for each in records]}, arrays).with_parts(
        pooled=pooled, settings=_settings_to_archive(state.settings)
    )


def from_archive(saved: Archive, d: int) -> KeyedState:
    """Restore a state for d features from its archive; raise `ModelFileError` if it is not valid."""
    pooled = serialization.from_archive(saved.part("pooled"), d)
    names = saved.strings("names")
    keys = saved.ints("keys", len(names), least=-(2**63), most=2**63 - 1)
    if (np.diff(keys.astype(object)) <= 0).any():
        raise ModelFileError(f"{saved.prefix}keys must be different and in ascending order")
    rows = saved.counts("rows", len(names), pooled.clock, least=1).tolist()
    errors = saved.floats_between(0.0, _MAX_SQUARE * pooled.clock, "errors", len(names), 2).tolist()
    count = saved.shape("added_scales", 1)[0]
    if count >= d:
        raise ModelFileError(f"{saved.prefix}added_scales must be fewer than the features, {d}, got {count}")
    return KeyedState(
        pooled,
        _settings_from_archive(saved.part("settings")),
        LearnerStore({key: _verified(saved, f"learner{i}") for i, key in enumerate(keys.tolist())}),
        {key: KeyRecord(name, n, *sums) for key, name, n, sums in zip(keys.tolist(), names, rows, errors, strict=True)},
        saved.floats_above(0.0, "added_scales", count),
    )


def _verified(saved: Archive, name: str) -> bytes:
    data = saved.data(name)
    verify(data, f"{saved.prefix}{name}")
    return data


def _settings_to_archive(settings: KeySettings) -> Archive:
    size = settings.size
    facts = {"views": size.views, "neighbors": size.neighbors, "max_centers": size.max_centers}
    return Archive(facts | {"random_state": settings.random_state}).with_parts(config=Archive(asdict(settings.config)))


def _settings_from_archive(saved: Archive) -> KeySettings:
    size = LearnerSize(saved.integer("views", 1, 2), saved.integer("neighbors", 2), saved.integer("max_centers", 16))
    try:
        size.checked()
    except DomainError as error:
        raise ModelFileError(f"{saved.prefix}{error}") from error
    config = serialization.config_from_archive(saved.part("config"))
    return KeySettings(size, saved.integer("random_state", 0, MAX_SEED), config)
