"""Which iterations a run keeps, what it keeps of them, and the trajectory it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from attsvm import _checks
from attsvm._typing import ArrayLike, FloatArray, IntArray
from attsvm.descent._start import State
from attsvm.errors import ArgumentError

Record: TypeAlias = Callable[[int], bool] | Iterable[int]

# What `keep` may name.
KEEPABLE = ("W", "K", "Q", "logits", "attention", "loss", "log_gradient_norm")


def every(step: int) -> Callable[[int], bool]:
    """Record iterations 0, step, 2 step, … (and the last one, which is always recorded).

    Parameters
    ----------
    step
        At least one.  Iteration k is the state after k updates; 0 is the start.

    Returns
    -------
    callable
        For `record` of `train`.

    Raises
    ------
    ArgumentError
        If `step` is not a whole number above zero.
    """
    step = _checks.integer("step", step, low=1)
    return lambda iteration: iteration % step == 0


def at(iterations: Iterable[int]) -> Callable[[int], bool]:
    """Record exactly these iterations (and the last one, which is always recorded).

    Parameters
    ----------
    iterations
        Non-negative integers; those outside the run do not matter.

    Returns
    -------
    callable
        For `record` of `train`.

    Raises
    ------
    ArgumentError
        If an entry is not a whole number, or is negative.
    """
    return {_checks.integer("iterations", k, low=0) for k in iterations}.__contains__


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
    W: FloatArray
    logits: FloatArray
    attention: FloatArray
    K: FloatArray | None = None
    Q: FloatArray | None = None


Measure: TypeAlias = Callable[[Snapshot], ArrayLike]


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

    iterations: IntArray
    state: State
    W: FloatArray | None = None
    K: FloatArray | None = None
    Q: FloatArray | None = None
    attention: FloatArray | None = None
    logits: FloatArray | None = None
    loss: FloatArray | None = None
    log_gradient_norm: FloatArray | None = None
    measures: Mapping[str, FloatArray] = field(default_factory=dict)


def checked_keep(keep: str | Iterable[str], parameterization: str) -> tuple[str, ...]:
    """The names in `keep`, each checked: K and Q are there for a run in (K, Q) only."""
    names = (keep,) if isinstance(keep, str) else tuple(keep)
    allowed = [k for k in KEEPABLE if parameterization == "KQ" or k not in ("K", "Q")]
    return tuple(_checks.choice("keep", name, allowed) for name in names)


class Recorder:
    """Collects the recorded quantities of all chunks in arrays (records, instances, …).

    The run goes from iteration `start` to `stop`.  The start itself is recorded only where it is
    iteration 0: a continued run recorded it before.
    """

    def __init__(self, record: Record | None, start: int, stop: int, instances: int) -> None:
        if callable(record):
            chosen = {k for k in range(start, stop + 1) if record(k) and (k > start or k == 0)}
        else:
            given = () if record is None else record
            chosen = {_checks.integer("record", k, low=start, high=stop + 1) for k in given}
        self.iterations = np.array(sorted(chosen | {stop}), dtype=np.int64)
        self._row = {int(k): row for row, k in enumerate(self.iterations)}
        self._instances = instances
        self._kept: dict[str, FloatArray] = {}

    def wants(self, iteration: int) -> bool:
        """Whether this iteration is to be recorded."""
        return iteration in self._row

    def put(self, name: str, iteration: int, instances: slice, value: ArrayLike) -> None:
        """Store the value (B, …) of one quantity of one chunk."""
        value = np.asarray(value)
        count = instances.stop - instances.start
        if value.shape[:1] != (count,):
            expected = f"{name}: a leading axis of {count}"
            raise ArgumentError("measure", expected, f"shape {value.shape}")
        if name not in self._kept:
            shape = (len(self._row), self._instances, *value.shape[1:])
            self._kept[name] = np.empty(shape, dtype=value.dtype)
        target = self._kept[name][self._row[iteration], instances]
        if target.shape != value.shape:
            raise ArgumentError("measure", f"{name}: shape {target.shape}", f"shape {value.shape}")
        target[...] = value

    def collected(self, names: Iterable[str], batch: tuple[int, ...]) -> dict[str, FloatArray]:
        """The named quantities with the problem's own batch axes."""
        kept = {name: self._kept[name] for name in names}
        return {
            name: array.reshape(len(self._row), *batch, *array.shape[2:])
            for name, array in kept.items()
        }
