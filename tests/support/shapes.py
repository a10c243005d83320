"""Shapes in the annotations of `attsvm`, checked at every call under pytest.

Only arrays are checked: that wrong input of a user gets the package's own error is what other
tests are about.
"""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Callable
from typing import Any

from beartype import beartype

_ARRAY = re.compile(r"\b(Float|Int|Bool)\[")


def arrays_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, which checks those of its arguments whose annotation has a shape."""
    shaped = {
        name: hint
        for name, hint in getattr(function, "__annotations__", {}).items()
        if _ARRAY.search(str(hint))
    }
    if not shaped or not isinstance(function, types.FunctionType):
        return function
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__,
        function.__closure__,
    )  # fmt: skip
    functools.update_wrapper(copy, function)
    del copy.__wrapped__
    copy.__kwdefaults__, copy.__annotations__ = function.__kwdefaults__, shaped
    return beartype(copy)
