"""Names for array types: with a shape where there is one to say, ``Float[Array, "n T d"]``.

The tests check shapes at every call (see ``tests/support/shapes.py``); at run time they cost
nothing.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike, NDArray

__all__ = ["Array", "ArrayLike", "Bool", "BoolArray", "Float", "FloatArray", "Int", "IntArray"]

Array: TypeAlias = np.ndarray
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
