"""The margin constraints of the Att-SVM as normalised rows.

Every constraint of the paper's programs has rank one: with the token difference D_j and the query
z_j, a_j(W) = D_j' W z_j = <D_j z_j', W>.  The solvers work on *normalised* rows, ‖D_j‖ = ‖z_j‖ = 1,
and move the lengths to the right-hand side: a_j(W) ≥ 1 becomes <D_j z_j', W> ≥ 1/(‖D_j‖‖z_j‖).
Without that, tokens scaled by 1e±6 or queries of very different length drown in rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from attsvm import _checks
from attsvm._typing import ArrayLike, BoolArray, FloatArray, IntArray
from attsvm.errors import ArgumentError

# Certificates square products of tokens and queries: their fourth powers have to fit float64.
_LARGEST = 1e70


@dataclass(slots=True)
class Rows:
    """Normalised constraints <D_j z_j', W> ≥ b_j, or = b_j where `free`.

    Parameters
    ----------
    D
        (m, d), unit token differences (a zero difference stays zero).
    Z
        (m, d), the unit query of each row.
    b
        (m,), right-hand sides in units of `scale`.
    free
        (m,) bool, True for an equality, whose multiplier is free in sign; None: no equality.
    norms
        (m,), ‖D_j‖‖z_j‖ of the rows as given.
    scale
        The right-hand sides as given are ``scale * b / norms`` times the norms: W = scale · Ŵ.
    """

    D: FloatArray
    Z: FloatArray
    b: FloatArray
    free: BoolArray | None
    norms: FloatArray
    scale: float

    def __len__(self) -> int:
        return self.b.shape[0]

    @property
    def lengths(self) -> FloatArray:
        """(m,), `norms`, with 1 for 0: multipliers of these rows / lengths are those as given."""
        return np.where(self.norms > 0, self.norms, 1.0)

    def part(self, index: IntArray) -> Rows:
        """Some of the rows."""
        free = None if self.free is None else self.free[index]
        return Rows(
            self.D[index], self.Z[index], self.b[index], free, self.norms[index], self.scale
        )

    def gram(self) -> FloatArray:
        """(m, m), <D_j z_j', D_k z_k'> = (D D') ∘ (Z Z')."""
        return (self.D @ self.D.T) * (self.Z @ self.Z.T)

    def matrix(self) -> FloatArray:
        """(m, d·d), the rows written out."""
        return (self.D[:, :, None] * self.Z[:, None, :]).reshape(len(self), -1)

    def combine(self, multipliers: FloatArray) -> FloatArray:
        """(d, d), Σ_j λ_j D_j z_j'."""
        return self.D.T @ (multipliers[:, None] * self.Z)

    def values(self, W: FloatArray) -> FloatArray:
        """(m,), D_j' W z_j."""
        return ((self.D @ W) * self.Z).sum(1)


def differences(X: FloatArray, selected: IntArray) -> FloatArray:
    """(…, n, T, d), x_{i,α_i} − x_it for tokens X of that shape and `selected` (…, n)."""
    return np.take_along_axis(X, selected[..., None, None], -2) - X


def _power_of_two(size: float) -> float:
    """A scale near `size` that costs no rounding."""
    return float(2.0 ** np.ceil(np.log2(size))) if size > 0 else 1.0


@dataclass(slots=True)
class Program:
    """Constraints of B programs of one size: D_it' W z_i ≥ 1, and equalities.

    Parameters
    ----------
    D
        (B, n, T, d), token differences.
    Z
        (B, n, d), queries.
    margin
        (B, n, T) bool, where D_it' W z_i ≥ 1 is asked.
    equal, right
        (B, n, T), where D_it' W z_i = right_it is asked; None: nowhere.
    """

    D: FloatArray
    Z: FloatArray
    margin: BoolArray
    equal: BoolArray | None = None
    right: FloatArray | None = None

    def targets(self) -> FloatArray:
        """(B, n, T), the right-hand sides; 0 where there is no constraint."""
        ones = self.margin.astype(np.float64)
        if self.equal is None or self.right is None:
            return ones
        return np.where(self.equal, self.right, ones)

    def _lengths(self, vectors: FloatArray) -> FloatArray:
        # Either sum will do; which one it is decides the last digit of recorded results.
        if self.equal is None:
            return np.sqrt(np.einsum("...d,...d->...", vectors, vectors))
        return np.sqrt((vectors * vectors).sum(-1))

    def rows(self) -> Iterator[tuple[IntArray, Rows]]:
        """For each program the flat places (m,) of its constraints in (n, T), and its rows."""
        B, n, T, d = self.D.shape
        dn, zn = self._lengths(self.D), self._lengths(self.Z)
        unit_D = (self.D / np.where(dn > 0, dn, 1.0)[..., None]).reshape(B, n * T, d)
        unit_Z = self.Z / np.where(zn > 0, zn, 1.0)[..., None]
        norms = (dn * zn[..., None]).reshape(B, n * T)
        used = (self.margin if self.equal is None else self.margin | self.equal).reshape(B, n * T)
        equal = None if self.equal is None else self.equal.reshape(B, n * T)
        targets = self.targets().reshape(B, n * T)
        for i in range(B):
            places = used[i].nonzero()[0]
            length = norms[i].take(places)
            b = targets[i].take(places) / np.where(length > 0, length, 1.0)
            scale = _power_of_two(float(np.abs(b).max(initial=0.0)))
            free = None if equal is None else equal[i].take(places)
            D, Z = unit_D[i].take(places, 0), unit_Z[i].take(places // T, 0)
            yield places, Rows(D, Z, b / scale, free, length, scale)


@dataclass(slots=True)
class Instances:
    """Checked arguments with a leading axis: (B, n, T, d), (B, n, d), (B, n) and (B, n, T)."""

    X: FloatArray
    Z: FloatArray
    selected: IntArray
    mask: BoolArray | None

    def __len__(self) -> int:
        return self.X.shape[0]

    def piece(self, start: int, stop: int) -> Instances:
        """Instances start … stop − 1."""
        mask = None if self.mask is None else self.mask[start:stop]
        return Instances(self.X[start:stop], self.Z[start:stop], self.selected[start:stop], mask)

    def program(self) -> Program:
        """A margin for every token that exists and is not the selected one."""
        D = differences(self.X, self.selected)
        margin = np.ones(D.shape[:-1], dtype=bool) if self.mask is None else self.mask.copy()
        np.put_along_axis(margin, self.selected[..., None], False, -1)
        if self.mask is not None:
            # What stands at a masked place is nobody's token.
            D = np.where(self.mask[..., None], D, 0.0)
        return Program(D, self.Z, margin)


def tokens_and_queries(
    X: ArrayLike, Z: ArrayLike, many: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Check X ([B,] n, T, d) and Z ([B,] n, d), with the leading axis if `many`.

    Raises
    ------
    ArgumentError
        If shapes do not fit together, a number is not finite, or there is no instance, sequence,
        token or dimension; also if the largest entry is above 1e70, or below 1e-70 and not zero:
        products of four would overflow or vanish.
    """
    X = _checks.array("X", X)
    if X.ndim != (4 if many else 3):
        lead = "(instances, n, T, d)" if many else "(n, T, d)"
        raise ArgumentError("X", f"tokens of shape {lead}", f"shape {X.shape}")
    if 0 in X.shape:
        raise ArgumentError("X", "at least one of everything", f"shape {X.shape}")
    Z = _checks.array("Z", Z, shape=(*X.shape[:-2], X.shape[-1]))
    for name, value in (("X", X), ("Z", Z)):
        top = max(float(value.max()), -float(value.min()))
        if top > _LARGEST or 0.0 < top < 1.0 / _LARGEST:
            raise ArgumentError(name, "entries of size 1e-70 to 1e70, or zero", f"size {top:.1e}")
    return X, Z


def read(
    X: ArrayLike, Z: ArrayLike, selected: ArrayLike, mask: ArrayLike | None, many: bool
) -> Instances:
    """Check the arguments of a solver.

    Raises
    ------
    ArgumentError
        As in `tokens_and_queries`; also if an index is out of range or a selected token is masked.
    """
    X, Z = tokens_and_queries(X, Z, many)
    *batch, T, _ = X.shape
    selected = _checks.integers("selected", selected, shape=batch, low=0, high=T)
    if mask is not None:
        mask = _checks.booleans("mask", mask, shape=(*batch, T))
        if not np.take_along_axis(mask, selected[..., None], -1).all():
            raise ArgumentError(
                "mask", "True at every selected token", "a selected token is masked"
            )
    if many:
        return Instances(X, Z, selected, mask)
    return Instances(X[None], Z[None], selected[None], None if mask is None else mask[None])
