"""Prediction heads h: what turns the attention output into a prediction (Section 2 and Section 6).

The formulas use only operators that numpy arrays and torch tensors share, so the same head serves
the SVM side (numpy) and the descent (torch) without a second copy.  Parameters may carry leading
instance axes, one head an instance; ``x`` then has the same leading axes, followed by ``n`` and
perhaps ``T``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from attsvm import _checks
from attsvm.errors import ArgumentError

__all__ = ["Head", "LinearHead", "QuadraticHead", "ReLUHead", "stack_heads"]

Array = Any  # a numpy array or a torch tensor


@runtime_checkable
class Head(Protocol):
    """What `descent` and `AttentionProblem.scores` need to know of a head."""

    def value(self, x: Array) -> Array:
        """h(x) for the last axis of x."""

    def gradient(self, x: Array) -> Array:
        """∇h(x), of the shape of x."""

    def to(self, convert: Callable[[Any], Any]) -> Head:
        """The same head with its parameter arrays converted."""

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Leading instance axes of the parameters."""

    @property
    def d(self) -> int:
        """Dimension of the tokens."""

    def instance(self, index: Any) -> Head:
        """The head of some instances."""


def _aligned(parameter: Array, x: Array, own_axes: int, x_axes: int) -> Array:
    """Give `parameter` (…, own) the axes it lacks between its batch axes and its own, to meet x.

    A parameter without batch axes broadcasts as it is.
    """
    batch = parameter.ndim - own_axes
    if batch == 0:
        return parameter
    middle = x.ndim - batch - x_axes
    return parameter.reshape(
        tuple(parameter.shape[:batch]) + (1,) * middle + tuple(parameter.shape[batch:])
    )


def _times(x: Array, matrix: Array) -> Array:
    """Rows of x (…, [n, [T,]] d) times a matrix (…, d, m): one product for each instance.

    Giving `matrix` the axes it lacks would copy it for every row, which at the paper's sizes takes
    longer than the product.
    """
    batch = matrix.ndim - 2
    rows = x.reshape((*x.shape[:batch], -1, x.shape[-1]))
    return (rows @ matrix).reshape((*x.shape[:-1], matrix.shape[-1]))


@dataclass(frozen=True, eq=False)
class _ArrayHead:
    """What the three heads share: conversion and choice of instances over dataclass fields."""

    _own_axes = 1

    def to(self, convert: Callable[[Any], Any]) -> Any:
        return replace(self, **{name: convert(value) for name, value in self._arrays().items()})

    def _arrays(self) -> dict[str, Array]:
        return {f.name: getattr(self, f.name) for f in fields(self) if f.metadata["array"]}

    def _constants(self) -> dict[str, float]:
        return {f.name: getattr(self, f.name) for f in fields(self) if not f.metadata["array"]}

    @property
    def batch_shape(self) -> tuple[int, ...]:
        first = next(iter(self._arrays().values()))
        return tuple(first.shape[: first.ndim - self._own_axes])

    @property
    def d(self) -> int:
        first = next(iter(self._arrays().values()))
        return int(first.shape[first.ndim - self._own_axes])

    def instance(self, index: Any) -> Any:
        return self.to(lambda parameter: parameter[index]) if self.batch_shape else self


_ARRAY = {"array": True}  # metadata of fields that hold parameter arrays
_CONSTANT = {"array": False}


def _read(name: str, value: Array, least: int) -> Array:
    """Check numpy input; tensors, which only `to` brings here, pass as they are."""
    if not isinstance(value, np.ndarray | list | tuple | float | int):
        return value
    read = _checks.array(name, value)
    if read.ndim < least:
        raise ArgumentError(name, f"at least {least} axes", f"shape {read.shape}")
    return read


@dataclass(frozen=True, eq=False)
class LinearHead(_ArrayHead):
    """h(x) = v'x, the head of all theorems up to Section 5.

    Parameters
    ----------
    v
        (…, d).
    """

    v: Array = field(metadata=_ARRAY)

    def __post_init__(self) -> None:
        object.__setattr__(self, "v", _read("v", self.v, 1))

    def value(self, x: Array) -> Array:
        return (x * _aligned(self.v, x, 1, 1)).sum(-1)

    def gradient(self, x: Array) -> Array:
        return x * 0 + _aligned(self.v, x, 1, 1)


@dataclass(frozen=True, eq=False)
class ReLUHead(_ArrayHead):
    """h(x) = Σ_j max(0, V_j'x), one layer of ReLU units (Section 6, several selected tokens).

    Parameters
    ----------
    V
        (…, d, m): a column for each unit.
    """

    V: Array = field(metadata=_ARRAY)
    _own_axes = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "V", _read("V", self.V, 2))

    def _units(self, x: Array) -> Array:
        return _times(x, self.V)

    def value(self, x: Array) -> Array:
        units = self._units(x)
        return (units * (units > 0)).sum(-1)

    def gradient(self, x: Array) -> Array:
        units = self._units(x)
        active = (units > 0) + 0 * units
        return _times(active, self.V.mT)


@dataclass(frozen=True, eq=False)
class QuadraticHead(_ArrayHead):
    """h(x) = v'x − λ‖x‖², which rewards mixing tokens the more, the larger λ (Section 6).

    Parameters
    ----------
    v
        (…, d).
    ridge
        λ ≥ 0.
    """

    v: Array = field(metadata=_ARRAY)
    ridge: float = field(metadata=_CONSTANT)

    def __post_init__(self) -> None:
        object.__setattr__(self, "v", _read("v", self.v, 1))
        object.__setattr__(self, "ridge", _checks.number("ridge", self.ridge, at_least=0.0))

    def value(self, x: Array) -> Array:
        return (x * _aligned(self.v, x, 1, 1)).sum(-1) - self.ridge * (x * x).sum(-1)

    def gradient(self, x: Array) -> Array:
        return _aligned(self.v, x, 1, 1) - 2 * self.ridge * x


def stack_heads(heads: Sequence[Any]) -> Any:
    """One head whose parameters are those of `heads` along a new leading axis.

    Raises
    ------
    ArgumentError
        If there is none, or they differ in kind, shape or constants.
    """
    if not heads:
        raise ArgumentError("heads", "at least one head", "none")
    first = heads[0]
    for head in heads[1:]:
        if type(head) is not type(first) or head._constants() != first._constants():
            raise ArgumentError("heads", f"all like {first}", f"{head}")
    shapes = {name: value.shape for name, value in first._arrays().items()}
    for head in heads:
        if {name: value.shape for name, value in head._arrays().items()} != shapes:
            raise ArgumentError("heads", f"parameters of shapes {shapes}", f"{head._arrays()}")
    stacked = {name: np.stack([head._arrays()[name] for head in heads]) for name in shapes}
    return replace(first, **stacked)
