"""Checks of arguments: each returns the value in the form used here, or raises `ArgumentError`.

`name` is the argument's name, for the message; `shape` the lengths of axes, None for any length.
"""

from __future__ import annotations

import numbers
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attsvm.errors import ArgumentError

Shape = Sequence[int | None]


def _described(value: Any) -> str:
    """Say what came, shortly: shape and dtype of an array, else the type and a clipped value."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


def _check_shape(name: str, array: NDArray[Any], ndim: int | None, shape: Shape | None) -> None:
    have = array.shape
    if ndim is not None and len(have) != ndim:
        raise ArgumentError(name, f"an array of {ndim} axes", f"shape {have} ({len(have)} axes)")
    if shape is not None and (
        len(have) != len(shape) or any(w not in (None, h) for w, h in zip(shape, have, strict=True))
    ):
        text = ", ".join("any" if s is None else str(s) for s in shape)
        raise ArgumentError(name, f"shape ({text})", f"shape {have}")


def _as_array(name: str, value: Any) -> NDArray[Any]:
    """A plain array from anything array-like, torch tensors on the CPU included."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ArgumentError(name, "something numpy can read as one array", str(error)) from error


def array(
    name: str, value: Any, *, ndim: int | None = None, shape: Shape | None = None
) -> NDArray[np.float64]:
    """A finite real array in float64."""
    read = _as_array(name, value)
    if read.dtype.kind not in "fiu":
        raise ArgumentError(name, "real numbers", _described(read if read.ndim else value))
    _check_shape(name, read, ndim, shape)
    result = np.ascontiguousarray(read, dtype=np.float64).reshape(read.shape)
    if not np.isfinite(result).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(result))[0])
        raise ArgumentError(name, "finite numbers", f"{result[where]} at index {where}")
    return result


def integers(
    name: str,
    value: Any,
    *,
    shape: Shape | None = None,
    low: int | None = None,
    high: int | None = None,
) -> NDArray[np.int64]:
    """An array of whole numbers in [low, high)."""
    read = _as_array(name, value)
    if read.dtype.kind not in "iu":
        raise ArgumentError(name, "whole numbers", _described(read if read.ndim else value))
    _check_shape(name, read, None, shape)
    result = read.astype(np.int64)
    bad = np.zeros(result.shape, dtype=bool)
    bad |= False if low is None else result < low
    bad |= False if high is None else result >= high
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        span = f"{'' if low is None else low}..{'' if high is None else high - 1}"
        raise ArgumentError(name, f"entries in {span}", f"{result[where]} at index {where}")
    return result


def booleans(name: str, value: Any, *, shape: Shape | None = None) -> NDArray[np.bool_]:
    """An array of truth values."""
    read = _as_array(name, value)
    if read.dtype.kind != "b":
        raise ArgumentError(name, "truth values", _described(read if read.ndim else value))
    _check_shape(name, read, None, shape)
    return read


def choice(name: str, value: Any, allowed: Iterable[str]) -> str:
    """One of a few words."""
    words = list(allowed)
    if not isinstance(value, str) or value not in words:
        raise ArgumentError(name, "one of " + ", ".join(map(repr, words)), _described(value))
    return value


def number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> float:
    """A finite real number within bounds."""
    limits = (
        (above, "above", operator.gt),
        (at_least, "at least", operator.ge),
        (below, "below", operator.lt),
        (at_most, "at most", operator.le),
    )
    bounds = [(bound, word, holds) for bound, word, holds in limits if bound is not None]
    words = " and ".join(f"{word} {bound}" for bound, word, _ in bounds)
    expected = f"a finite number {words}".strip()
    real = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    if not real or not np.isfinite(float(value)):
        raise ArgumentError(name, expected, _described(value))
    result = float(value)
    if not all(holds(result, bound) for bound, _, holds in bounds):
        raise ArgumentError(name, expected, repr(value))
    return result


def positive(name: str, value: Any) -> float:
    """A finite number above zero."""
    return number(name, value, above=0.0)


def integer(name: str, value: Any, *, low: int | None = None, high: int | None = None) -> int:
    """One whole number in [low, high)."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool | np.bool_):
        raise ArgumentError(name, "a whole number", _described(value))
    return int(integers(name, np.asarray(int(value)), low=low, high=high))
