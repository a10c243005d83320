"""Where descent starts: zero, given arrays, an earlier state, or seeded random weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attsvm import _checks
from attsvm.errors import ArgumentError

__all__ = ["State", "random_weights", "starting_state"]

Array = NDArray[np.float64]

# Sets the stream of weights apart from any other use of the same seed, above all the data's.
_STREAM = 0x5757


@dataclass(frozen=True, eq=False)
class State:
    """All that is needed to go on: iteration count and parameters.

    Attributes
    ----------
    iteration
        Updates made so far.
    W
        (…, d, d), or None for a run in (K, Q).
    K, Q
        (…, d, m) each, or None for a run in W.
    """

    iteration: int
    W: Array | None = None
    K: Array | None = None
    Q: Array | None = None

    @property
    def parameterization(self) -> str:
        """ "W" or "KQ"."""
        return "KQ" if self.W is None else "W"

    @property
    def arrays(self) -> dict[str, Array]:
        """The parameters by name."""
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "iteration"}
        return {name: value for name, value in named.items() if value is not None}


def random_weights(seeds: Sequence[int], shapes: Sequence[tuple[int, int]]) -> list[Array]:
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
    list of arrays (len(seeds), d, m)
    """
    arrays = [np.empty((len(seeds), *shape)) for shape in shapes]
    for row, seed in enumerate(seeds):
        generator = np.random.Generator(np.random.PCG64([_STREAM, int(seed)]))
        for array in arrays:
            bound = 1.0 / np.sqrt(array.shape[1])
            array[row] = generator.uniform(-bound, bound, size=array.shape[1:])
    return arrays


def _given(
    name: str, value: Any, batch: tuple[int, ...], shape: tuple[int | None, int | None]
) -> Array:
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
    initial: Any,
    seeds: Any,
) -> State:
    """Turn `initial`, `seeds` and `width` of `train` into a state with all batch axes.

    Raises
    ------
    ArgumentError
        If they contradict each other or do not fit the problem.
    """
    if initial is not None and seeds is not None:
        raise ArgumentError("seeds", "no seeds where initial weights are given", "both")
    if parameterization == "W" and width is not None:
        raise ArgumentError("width", 'None for parameterization "W"', str(width))
    m = d if width is None else _checks.integer("width", width, low=1)

    if isinstance(initial, State):
        if initial.parameterization != parameterization:
            raise ArgumentError(
                "initial",
                f"a state of a run in {parameterization}",
                f"one in {initial.parameterization}",
            )
        if parameterization == "W":
            return State(initial.iteration, W=_given("initial.W", initial.W, batch, (d, d)))
        K = _given("initial.K", initial.K, batch, (d, width))
        return State(
            initial.iteration, K=K, Q=_given("initial.Q", initial.Q, batch, (d, K.shape[-1]))
        )

    if seeds is not None:
        if not batch:
            seeds = [_checks.integer("seeds", seeds, low=0)]
        else:
            seeds = list(seeds) if isinstance(seeds, range) else seeds
            seeds = _checks.integers("seeds", seeds, shape=batch, low=0).ravel()
        shapes = [(d, d)] if parameterization == "W" else [(d, m), (d, m)]
        drawn = [a.reshape(*batch, *a.shape[1:]) for a in random_weights(seeds, shapes)]
        return State(0, W=drawn[0]) if parameterization == "W" else State(0, K=drawn[0], Q=drawn[1])

    if parameterization == "W":
        value = np.zeros((d, d)) if initial is None else initial
        return State(0, W=_given("initial", value, batch, (d, d)))
    if initial is None:
        raise ArgumentError(
            "initial", "a pair (K, Q), a state, or seeds (K = Q = 0 is a stationary point)", "none"
        )
    if not isinstance(initial, tuple | list) or len(initial) != 2:
        raise ArgumentError("initial", "a pair (K, Q)", type(initial).__name__)
    K = _given("initial K", initial[0], batch, (d, width))
    return State(0, K=K, Q=_given("initial Q", initial[1], batch, (d, K.shape[-1])))
