"""Numbers measured over instances, with their 95 % intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attsvm import _checks
from attsvm._typing import ArrayLike, FloatArray
from attsvm.errors import ArgumentError

#: Two-sided 95 % quantile of the normal law: every interval is at this level.
Z95 = 1.959963984540054


@dataclass(frozen=True)
class Estimate:
    """A number measured over instances, with its 95 % interval.

    Attributes
    ----------
    value, n
        The mean or the share, and the number of instances behind it.
    low, high
        Ends of the interval; both equal the value for a single deterministic measurement.
    """

    value: float
    low: float
    high: float
    n: int

    @property
    def halfwidth(self) -> float:
        """Half the length of the interval."""
        return (self.high - self.low) / 2

    @property
    def standard_error(self) -> float:
        """Standard error of the value, by the normal law."""
        return self.halfwidth / Z95

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.halfwidth:.2g} (n = {self.n})"


def mean_estimate(values: ArrayLike) -> Estimate:
    """Mean over instances with the normal-theory 95 % interval, mean ± 1.96 s/√n (0 for n = 1).

    Parameters
    ----------
    values
        (instances,), finite: missing ones belong into the ledger.

    Raises
    ------
    ArgumentError
        If there is no value, or one is not finite.
    """
    x = _checks.array("values", values, ndim=1)
    if x.size == 0:
        raise ArgumentError("values", "at least one number", "none")
    mean = float(x.mean())
    half = Z95 * float(x.std(ddof=1)) / x.size**0.5 if x.size > 1 else 0.0
    return Estimate(value=mean, low=mean - half, high=mean + half, n=int(x.size))


def share_estimate(hits: ArrayLike) -> Estimate:
    """Share of instances with a property, with Wilson's 95 % interval (sensible at 0 and 1 too).

    Parameters
    ----------
    hits
        (instances,) of truth values.

    Raises
    ------
    ArgumentError
        If there is no instance or the values are not boolean.
    """
    yes = _checks.booleans("hits", hits)
    if yes.ndim != 1 or yes.size == 0:
        raise ArgumentError("hits", "at least one truth value", f"shape {yes.shape}")
    n, share = int(yes.size), float(yes.mean())
    low, high = wilson_interval(share, n)
    return Estimate(value=share, low=float(low), high=float(high), n=n)


def wilson_interval(share: ArrayLike, n: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Ends of Wilson's 95 % interval for shares of n instances; arrays broadcast.

    Parameters
    ----------
    share, n
        Observed shares, in [0, 1], and numbers of instances.

    Returns
    -------
    low, high : ndarray
        Exactly 0 at share 0, and 1 at share 1.

    Raises
    ------
    ArgumentError
        If a share is outside [0, 1] or a number is below one.
    """
    p, count = _checks.array("share", share), _checks.array("n", n)
    if ((p < 0) | (p > 1)).any():
        raise ArgumentError("share", "shares in [0, 1]", f"{p[(p < 0) | (p > 1)].flat[0]}")
    if (count < 1).any():
        raise ArgumentError("n", "at least one instance", f"{count.min()}")
    shrink = 1 + Z95**2 / count
    centre = (p + Z95**2 / (2 * count)) / shrink
    half = Z95 * np.sqrt(p * (1 - p) / count + Z95**2 / (4 * count**2)) / shrink
    # At 0 and 1 an end is exact in theory and would be off by rounding.
    low = np.where(p == 0, 0.0, np.maximum(0.0, centre - half))
    high = np.where(p == 1, 1.0, np.minimum(1.0, centre + half))
    return low, high
