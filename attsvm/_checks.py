"""Checks of arguments: each returns the value in the form used here, or says what is wrong."""

from __future__ import annotations

import numbers
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


def _shape_text(shape: Shape) -> str:
    return "(" + ", ".join("any" if s is None else str(s) for s in shape) + ")"


def _check_shape(name: str, array: NDArray[Any], ndim: int | None, shape: Shape | None) -> None:
    if ndim is not None and array.ndim != ndim:
        raise ArgumentError(
            name, f"an array of {ndim} axes", f"shape {array.shape} ({array.ndim} axes)"
        )
    if shape is not None and (
        array.ndim != len(shape)
        or any(
            want is not None and want != have for want, have in zip(shape, array.shape, strict=True)
        )
    ):
        raise ArgumentError(name, f"shape {_shape_text(shape)}", f"shape {array.shape}")


def _as_array(name: str, value: Any) -> NDArray[Any]:
    """A plain array from anything array-like, torch tensors on the CPU included."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ArgumentError(name, "something numpy can read as one array", str(error)) from error


def array(
    name: str, value: Any, *, ndim: int | None = None, shape: Shape | None = None
) -> NDArray[np.float64]:
    """A finite real array in float64.

    Parameters
    ----------
    name
        The argument's name, for the message.
    value
        What the caller passed.
    ndim
        Number of axes, where it matters.
    shape
        Lengths of the axes; ``None`` stands for any length.

    Raises
    ------
    ArgumentError
        If the value is not a real array, has the wrong shape, or holds NaN or infinity.
    """
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
    """An array of whole numbers in [low, high).

    Raises
    ------
    ArgumentError
        If the value is not integral, has the wrong shape, or an entry is out of range.
    """
    read = _as_array(name, value)
    if read.dtype.kind not in "iu":
        raise ArgumentError(name, "whole numbers", _described(read if read.ndim else value))
    _check_shape(name, read, None, shape)
    result = read.astype(np.int64)
    bad = np.zeros(result.shape, dtype=bool)
    if low is not None:
        bad |= result < low
    if high is not None:
        bad |= result >= high
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        span = f"{'' if low is None else low}..{'' if high is None else high - 1}"
        raise ArgumentError(name, f"entries in {span}", f"{result[where]} at index {where}")
    return result


def booleans(name: str, value: Any, *, shape: Shape | None = None) -> NDArray[np.bool_]:
    """An array of truth values.

    Raises
    ------
    ArgumentError
        If the value is not boolean or has the wrong shape.
    """
    read = _as_array(name, value)
    if read.dtype.kind != "b":
        raise ArgumentError(name, "truth values", _described(read if read.ndim else value))
    _check_shape(name, read, None, shape)
    return read


def choice(name: str, value: Any, allowed: Iterable[str]) -> str:
    """One of a few words.

    Raises
    ------
    ArgumentError
        If the value is none of them.
    """
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
    """A finite real number within bounds.

    Raises
    ------
    ArgumentError
        If it is not a number, not finite, or out of bounds.
    """
    real = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    bounds = [
        text
        for bound, text in (
            (above, f"above {above}"),
            (at_least, f"at least {at_least}"),
            (below, f"below {below}"),
            (at_most, f"at most {at_most}"),
        )
        if bound is not None
    ]
    expected = " ".join(["a finite number", " and ".join(bounds)]).strip()
    if not real or not np.isfinite(float(value)):
        raise ArgumentError(name, expected, _described(value))
    result = float(value)
    if (
        (above is not None and not result > above)
        or (at_least is not None and not result >= at_least)
        or (below is not None and not result < below)
        or (at_most is not None and not result <= at_most)
    ):
        raise ArgumentError(name, expected, repr(value))
    return result


def positive(name: str, value: Any) -> float:
    """A finite number above zero."""
    return number(name, value, above=0.0)


def integer(name: str, value: Any, *, low: int | None = None, high: int | None = None) -> int:
    """One whole number in [low, high).

    Raises
    ------
    ArgumentError
        If it is not a whole number or out of range.
    """
    if not isinstance(value, numbers.Integral) or isinstance(value, bool | np.bool_):
        raise ArgumentError(name, "a whole number", _described(value))
    return int(integers(name, np.asarray(int(value)), low=low, high=high))
