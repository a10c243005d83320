"""Which iterations a run keeps, what it keeps of them, and the trajectory it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attsvm import _checks
from attsvm.descent._start import State
from attsvm.errors import ArgumentError

__all__ = ["KEEPABLE", "Snapshot", "Trajectory", "at", "every", "recorded_iterations"]

Array = NDArray[np.float64]

# What `keep` may name.
KEEPABLE = ("W", "K", "Q", "logits", "attention", "loss", "log_gradient_norm")


def every(step: int) -> Callable[[int], bool]:
    """Record iterations 0, step, 2 step, … (and the last one, which is always recorded).

    Iteration k is the state after k updates; 0 is the start.

    Raises
    ------
    ArgumentError
        If `step` is not a whole number above zero.
    """
    step = _checks.integer("step", step, low=1)
    return lambda iteration: iteration % step == 0


def at(iterations: Iterable[int]) -> Callable[[int], bool]:
    """Record exactly these iterations (and the last one, which is always recorded).

    Raises
    ------
    ArgumentError
        If an entry is not a whole number, or is negative.
    """
    listed = list(iterations)
    wanted: frozenset[int] = frozenset()
    if listed:
        wanted = frozenset(_checks.integers("iterations", listed, low=0).ravel().tolist())
    return lambda iteration: iteration in wanted


def recorded_iterations(record: Any, start: int, stop: int) -> NDArray[np.int64]:
    """The iterations to record of a run from `start` to `stop`.

    The start itself is recorded only where it is iteration 0: a continued run recorded it before.

    Raises
    ------
    ArgumentError
        If `record` is not None, a predicate, or whole numbers within the run.
    """
    chosen: set[int] = set()
    if callable(record):
        chosen = {k for k in range(start, stop + 1) if record(k)}
        if start > 0:
            chosen.discard(start)
    elif record is not None:
        listed = list(record)
        if listed:
            chosen = set(
                _checks.integers("record", listed, low=start, high=stop + 1).ravel().tolist()
            )
    return np.array(sorted(chosen | {stop}), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One recorded iteration of a chunk of instances, as a `measure` function sees it.

    Attributes
    ----------
    iteration
        Number of updates made.
    instances
        Which instances, along the flattened instance axis.
    W, logits, attention
        (B, d, d), (B, n, T), (B, n, T).
    K, Q
        (B, d, m), or None for a run in W.
    """

    iteration: int
    instances: slice
    W: Array
    logits: Array
    attention: Array
    K: Array | None = None
    Q: Array | None = None


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What a run recorded.  Iteration k is the state after k updates, 0 the start.

    Quantities that were not kept are None.  The last record is always the last iterate.

    Attributes
    ----------
    iterations
        (records,).
    state
        Where the run ended: pass it as `initial` to go on.
    W, K, Q
        (records, …, d, d), and (records, …, d, m) for a run in (K, Q), where W = K Q'.
    attention, logits
        (records, …, n, T): softmax weights s and logits X W z, −∞ at absent tokens.
    loss
        (records, …), without the ridge.
    log_gradient_norm
        (records, …): natural logarithm of the norm of ∇L (without the ridge; K and Q together), −∞
        at a stationary point.
    measures
        What the `measure` functions returned, (records, …, their own axes).
    """

    iterations: NDArray[np.int64]
    state: State
    W: Array | None = None
    K: Array | None = None
    Q: Array | None = None
    attention: Array | None = None
    logits: Array | None = None
    loss: Array | None = None
    log_gradient_norm: Array | None = None
    measures: Mapping[str, Array] = field(default_factory=dict)


def checked_keep(keep: Any, parameterization: str) -> tuple[str, ...]:
    """The names in `keep`, each checked.

    Raises
    ------
    ArgumentError
        If a name is unknown, or K or Q is asked of a run in W.
    """
    names = (keep,) if isinstance(keep, str) else tuple(keep)
    allowed = [k for k in KEEPABLE if parameterization == "KQ" or k not in ("K", "Q")]
    return tuple(_checks.choice("keep", name, allowed) for name in names)


class Recorder:
    """Collects the recorded quantities of all chunks in arrays (records, instances, …)."""

    def __init__(self, iterations: NDArray[np.int64], instances: int) -> None:
        self.iterations = iterations
        self._row = {int(k): row for row, k in enumerate(iterations)}
        self._instances = instances
        self._kept: dict[str, Array] = {}

    def wants(self, iteration: int) -> bool:
        """Whether this iteration is to be recorded."""
        return iteration in self._row

    def put(self, name: str, iteration: int, instances: slice, value: Array) -> None:
        """Store the value (B, …) of one quantity of one chunk.

        Raises
        ------
        ArgumentError
            If a measure answers without the leading instance axis or with changing shape.
        """
        value = np.asarray(value)
        count = instances.stop - instances.start
        if value.ndim == 0 or value.shape[0] != count:
            raise ArgumentError(
                "measure", f"{name}: a leading axis of {count}", f"shape {value.shape}"
            )
        if name not in self._kept:
            shape = (len(self._row), self._instances, *value.shape[1:])
            self._kept[name] = np.empty(shape, dtype=value.dtype)
        target = self._kept[name][self._row[iteration], instances]
        if target.shape != value.shape:
            raise ArgumentError("measure", f"{name}: shape {target.shape}", f"shape {value.shape}")
        target[...] = value

    def collected(self, names: Iterable[str], batch: tuple[int, ...]) -> dict[str, Array]:
        """The named quantities with the problem's own batch axes."""
        return {
            name: self._kept[name].reshape(len(self._row), *batch, *self._kept[name].shape[2:])
            for name in names
        }
