"""Prediction heads h: what turns the attention output into a prediction (Section 2 and Section 6).

The formulas use only operators that numpy arrays and torch tensors share, so the same head serves
the SVM side and descent.  Parameters may carry leading instance axes, one head an instance; ``x``
then has the same leading axes, followed by ``n`` and perhaps ``T``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeAlias

import numpy as np

from attsvm import _checks
from attsvm._typing import IntArray
from attsvm.errors import ArgumentError

__all__ = ["Head", "LinearHead", "QuadraticHead", "ReLUHead", "stack_heads"]

Array: TypeAlias = Any  # a numpy array or a torch tensor


def _aligned(parameter: Array, x: Array) -> Array:
    """Give `parameter` (…, d) the axes that x (…, [n, [T,]] d) has between its own two ends."""
    between = (1,) * (x.ndim - parameter.ndim)
    return parameter.reshape((*parameter.shape[:-1], *between, -1))


def _times(x: Array, matrix: Array) -> Array:
    """Rows of x (…, [n, [T,]] d) times a matrix (…, d, m): one product for each instance.

    Giving `matrix` the axes it lacks would copy it for every row, which at the paper's sizes takes
    longer than the product.
    """
    rows = x.reshape((*x.shape[: matrix.ndim - 2], -1, x.shape[-1]))
    return (rows @ matrix).reshape((*x.shape[:-1], matrix.shape[-1]))


@dataclass(frozen=True, eq=False)
class Head(ABC):
    """A head whose first field is its parameter array; other fields are the same for all."""

    _own_axes = 1  # the array's axes other than those of instances, d first

    @abstractmethod
    def value(self, x: Array) -> Array:
        """h(x) for the last axis of x: (…, d) to (…)."""

    @abstractmethod
    def gradient(self, x: Array) -> Array:
        """∇h(x), (…, d) like x."""

    def __post_init__(self) -> None:
        name, value = self._parameter
        # Tensors, which only `to` brings here, pass as they are.
        if isinstance(value, np.ndarray | list | tuple | float | int):
            value = _checks.array(name, value)
            if value.ndim < self._own_axes:
                raise ArgumentError(name, f"at least {self._own_axes} axes", f"shape {value.shape}")
            object.__setattr__(self, name, value)

    @property
    def _parameter(self) -> tuple[str, Array]:
        name = fields(self)[0].name
        return name, getattr(self, name)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Leading instance axes of the parameters."""
        return tuple(self._parameter[1].shape[: -self._own_axes])

    @property
    def d(self) -> int:
        """Dimension of the tokens."""
        return int(self._parameter[1].shape[-self._own_axes])

    def to(self, convert: Callable[[Array], Array]) -> Self:
        """The same head with its parameter array converted."""
        name, value = self._parameter
        return replace(self, **{name: convert(value)})

    def instance(self, index: int | slice | IntArray) -> Self:
        """The head of some instances along the leading axis; itself if there is none."""
        return self.to(lambda parameter: parameter[index]) if self.batch_shape else self


@dataclass(frozen=True, eq=False)
class LinearHead(Head):
    """h(x) = v'x, the head of all theorems up to Section 5.

    Parameters
    ----------
    v
        (…, d).

    Raises
    ------
    ArgumentError
        If v has no axis or is not finite.
    """

    v: Array

    def value(self, x: Array) -> Array:
        return (x * _aligned(self.v, x)).sum(-1)

    def gradient(self, x: Array) -> Array:
        return x * 0 + _aligned(self.v, x)


@dataclass(frozen=True, eq=False)
class ReLUHead(Head):
    """h(x) = Σ_j max(0, V_j'x), one layer of ReLU units (Section 6, several selected tokens).

    Parameters
    ----------
    V
        (…, d, m): a column for each unit.

    Raises
    ------
    ArgumentError
        If V has fewer than two axes or is not finite.
    """

    V: Array
    _own_axes = 2

    def value(self, x: Array) -> Array:
        units = _times(x, self.V)
        return (units * (units > 0)).sum(-1)

    def gradient(self, x: Array) -> Array:
        units = _times(x, self.V)
        return _times((units > 0) + 0 * units, self.V.mT)


@dataclass(frozen=True, eq=False)
class QuadraticHead(Head):
    """h(x) = v'x − λ‖x‖², which rewards mixing tokens the more, the larger λ (Section 6).

    Parameters
    ----------
    v
        (…, d).
    ridge
        λ ≥ 0.

    Raises
    ------
    ArgumentError
        If v has no axis, a number is not finite, or λ is negative.
    """

    v: Array
    ridge: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "ridge", _checks.number("ridge", self.ridge, at_least=0.0))

    def value(self, x: Array) -> Array:
        return (x * _aligned(self.v, x)).sum(-1) - self.ridge * (x * x).sum(-1)

    def gradient(self, x: Array) -> Array:
        return _aligned(self.v, x) - 2 * self.ridge * x


def stack_heads(heads: Sequence[Head]) -> Head:
    """One head whose parameters are those of `heads` along a new leading axis.

    Parameters
    ----------
    heads
        At least one, all of one kind with parameters of one shape.

    Raises
    ------
    ArgumentError
        If there is none, or they differ in kind, shape or constants.
    """
    kinds = set()
    for head in heads:
        parameter, *constants = (getattr(head, field.name) for field in fields(head))
        kinds.add((type(head).__name__, parameter.shape, *constants))
    if len(kinds) != 1:
        expected = "at least one, all of one kind with shapes and constants alike"
        raise ArgumentError("heads", expected, "; ".join(map(str, kinds)) or "none")
    stacked = np.stack([head._parameter[1] for head in heads])
    return heads[0].to(lambda _: stacked)
