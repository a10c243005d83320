"""Prediction heads h: what turns the attention output into a prediction (Section 2 and Section 6).

The formulas use only operators that numpy arrays and torch tensors share, so the same head serves
the SVM side (numpy) and the descent (torch) without a second copy.  Parameters may carry leading
instance axes, one head an instance; ``x`` then has the same leading axes, followed by ``n`` and
perhaps ``T``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np

from attsvm import _checks
from attsvm._typing import IntArray
from attsvm.errors import ArgumentError

__all__ = ["Head", "LinearHead", "QuadraticHead", "ReLUHead", "stack_heads"]

Array: TypeAlias = Any  # a numpy array or a torch tensor


@runtime_checkable
class Head(Protocol):
    """What `descent` and `AttentionProblem.scores` need to know of a head."""

    def value(self, x: Array) -> Array:
        """h(x) for the last axis of x: (…, d) to (…)."""

    def gradient(self, x: Array) -> Array:
        """∇h(x), (…, d) like x."""

    def to(self, convert: Callable[[Array], Array]) -> Self:
        """The same head with its parameter array converted."""

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Leading instance axes of the parameters."""

    @property
    def d(self) -> int:
        """Dimension of the tokens."""

    def instance(self, index: int | slice | IntArray) -> Self:
        """The head of some instances along the leading axis; itself if there is none."""


def _aligned(parameter: Array, x: Array) -> Array:
    """Give `parameter` (…, d) the axes that x (…, [n, [T,]] d) has between its own two ends.

    A parameter without batch axes broadcasts as it is.
    """
    batch = parameter.ndim - 1
    if batch == 0:
        return parameter
    return parameter.reshape((*parameter.shape[:batch], *(1,) * (x.ndim - batch - 1), -1))


def _times(x: Array, matrix: Array) -> Array:
    """Rows of x (…, [n, [T,]] d) times a matrix (…, d, m): one product for each instance.

    Giving `matrix` the axes it lacks would copy it for every row, which at the paper's sizes takes
    longer than the product.
    """
    rows = x.reshape((*x.shape[: matrix.ndim - 2], -1, x.shape[-1]))
    return (rows @ matrix).reshape((*x.shape[:-1], matrix.shape[-1]))


@dataclass(frozen=True, eq=False)
class _ArrayHead:
    """A head whose first field is its parameter array; other fields are the same for all."""

    _own_axes = 1  # the array's axes other than those of instances, d first

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
    def _constants(self) -> list[float]:
        return [getattr(self, field.name) for field in fields(self)[1:]]

    def to(self, convert: Callable[[Array], Array]) -> Self:
        name, value = self._parameter
        return replace(self, **{name: convert(value)})

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return tuple(self._parameter[1].shape[: -self._own_axes])

    @property
    def d(self) -> int:
        return int(self._parameter[1].shape[-self._own_axes])

    def instance(self, index: int | slice | IntArray) -> Self:
        return self.to(lambda parameter: parameter[index]) if self.batch_shape else self


@dataclass(frozen=True, eq=False)
class LinearHead(_ArrayHead):
    """h(x) = v'x, the head of all theorems up to Section 5.

    Parameters
    ----------
    v
        (…, d).

    Raises
    ------
    ArgumentError
        If v has no axis or a number in it is not finite.
    """

    v: Array

    def value(self, x: Array) -> Array:
        return (x * _aligned(self.v, x)).sum(-1)

    def gradient(self, x: Array) -> Array:
        return x * 0 + _aligned(self.v, x)


@dataclass(frozen=True, eq=False)
class ReLUHead(_ArrayHead):
    """h(x) = Σ_j max(0, V_j'x), one layer of ReLU units (Section 6, several selected tokens).

    Parameters
    ----------
    V
        (…, d, m): a column for each unit.

    Raises
    ------
    ArgumentError
        If V has fewer than two axes or a number in it is not finite.
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
class QuadraticHead(_ArrayHead):
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

    Returns
    -------
    head
        Of the same kind; its `batch_shape` begins with ``len(heads)``.

    Raises
    ------
    ArgumentError
        If there is none, or they differ in kind, shape or constants.
    """
    own = [head for head in heads if isinstance(head, _ArrayHead)]
    if not own or len(own) < len(heads):
        kinds = ", ".join(type(head).__name__ for head in heads) or "none"
        raise ArgumentError("heads", "at least one head, all of attsvm.heads", kinds)
    first = own[0]
    for head in own:
        if type(head) is not type(first) or head._constants != first._constants:
            raise ArgumentError("heads", f"all like {first}", f"{head}")
        have, want = head._parameter[1].shape, first._parameter[1].shape
        if have != want:
            raise ArgumentError("heads", f"parameters of shapes {want}", f"{have}")
    stacked = np.stack([head._parameter[1] for head in own])
    return first.to(lambda _: stacked)
