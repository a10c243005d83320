"""Where descent starts: zero, given arrays, an earlier state, or seeded random weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from attsvm import _checks
from attsvm._typing import ArrayLike, FloatArray
from attsvm.errors import ArgumentError

# Sets the stream of weights apart from any other use of the same seed, above all the data's.
_STREAM = 0x5757


@dataclass(frozen=True, eq=False)
class State:
    """All that is needed to go on.

    Attributes
    ----------
    iteration
        Updates made so far.
    W, K, Q
        (…, d, d), or (…, d, m) each; None what the run has not.
    """

    iteration: int
    W: FloatArray | None = None
    K: FloatArray | None = None
    Q: FloatArray | None = None

    @property
    def parameterization(self) -> str:
        """ "W" or "KQ"."""
        return "KQ" if self.W is None else "W"

    @property
    def arrays(self) -> dict[str, FloatArray]:
        """The parameters by name."""
        named = ((name, getattr(self, name)) for name in ("W", "K", "Q"))
        return {name: value for name, value in named if value is not None}


# What `train` can start from: W, a pair (K, Q), or the state of an earlier run.
Initial: TypeAlias = ArrayLike | tuple[ArrayLike, ArrayLike] | State


def random_weights(seeds: Sequence[int], shapes: Sequence[tuple[int, int]]) -> list[FloatArray]:
    """Weights U(−1/√d, 1/√d), the default of a torch Linear layer with d inputs.

    Each seed has a generator of its own, so that an instance starts at the same weights whichever
    batch or chunk it is in; the stream differs from that of the data drawn with the same seed.

    Parameters
    ----------
    seeds
        One non-negative integer for each instance.
    shapes
        Shapes (d, m) of the arrays, drawn in this order.

    Returns
    -------
    list of ndarray
        For each shape an array (len(seeds), d, m).
    """
    arrays = [np.empty((len(seeds), *shape)) for shape in shapes]
    for row, seed in enumerate(seeds):
        generator = np.random.Generator(np.random.PCG64([_STREAM, int(seed)]))
        for array in arrays:
            bound = 1.0 / np.sqrt(array.shape[1])
            array[row] = generator.uniform(-bound, bound, size=array.shape[1:])
    return arrays


def _given(
    name: str, value: ArrayLike, batch: tuple[int, ...], shape: tuple[int, int | None]
) -> FloatArray:
    """A starting array (d, m) for all instances alike or (…, d, m); answers (…, d, m)."""
    read = _checks.array(name, value)
    if read.ndim == 2 or not batch:
        _checks.array(name, read, shape=shape)
        return np.broadcast_to(read, (*batch, *read.shape)).copy()
    return _checks.array(name, read, shape=(*batch, *shape)).copy()


def starting_state(
    parameterization: str,
    batch: tuple[int, ...],
    d: int,
    width: int | None,
    initial: Initial | None,
    seeds: int | ArrayLike | None,
) -> State:
    """Turn `initial`, `seeds` and `width` of `train` into a state with all batch axes."""
    if initial is not None and seeds is not None:
        raise ArgumentError("seeds", "no seeds where initial weights are given", "both")
    if parameterization == "W" and width is not None:
        raise ArgumentError("width", 'None for parameterization "W"', str(width))
    m = d if width is None else _checks.integer("width", width, low=1)

    iteration = 0
    given: list[Any]
    if isinstance(initial, State):
        came = initial.parameterization
        if came != parameterization:
            raise ArgumentError("initial", f"a state of a run in {parameterization}", f"in {came}")
        iteration, given = initial.iteration, list(initial.arrays.values())
    elif seeds is not None:
        listed = list(seeds) if isinstance(seeds, range) else seeds
        chosen = _checks.integers("seeds", listed, shape=batch, low=0).ravel().tolist()
        shapes = [(d, d)] if parameterization == "W" else [(d, m), (d, m)]
        given = [a.reshape(*batch, *a.shape[1:]) for a in random_weights(chosen, shapes)]
    elif parameterization == "W":
        given = [np.zeros((d, d)) if initial is None else initial]
    elif isinstance(initial, tuple | list) and len(initial) == 2:
        given = list(initial)
    else:
        came = "none" if initial is None else type(initial).__name__
        reason = "a pair (K, Q), a state, or seeds (K = Q = 0 is a stationary point)"
        raise ArgumentError("initial", reason, came)

    if parameterization == "W":
        return State(iteration, W=_given("initial", given[0], batch, (d, d)))
    K = _given("initial K", given[0], batch, (d, width))
    return State(iteration, K=K, Q=_given("initial Q", given[1], batch, (d, K.shape[-1])))
