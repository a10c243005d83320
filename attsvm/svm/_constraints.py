"""The margin constraints of the Att-SVM as normalised rows.

Every constraint of the paper's programs has rank one: with the token difference D_j and the query
z_j, a_j(W) = D_j' W z_j = <D_j z_j', W>.  The solvers work on *normalised* rows, ‖D_j‖ = ‖z_j‖ = 1,
and move the lengths to the right-hand side: a_j(W) ≥ 1 becomes <D_j z_j', W> ≥ 1/(‖D_j‖‖z_j‖).
Without that, tokens scaled by 1e±6 or queries of very different length drown in rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attsvm import _checks
from attsvm.errors import ArgumentError

Float = NDArray[np.float64]
Int = NDArray[np.int64]
Bool = NDArray[np.bool_]


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

    D: Float
    Z: Float
    b: Float
    free: Bool | None
    norms: Float
    scale: float

    def __len__(self) -> int:
        return self.b.shape[0]

    def part(self, index: NDArray[np.intp]) -> Rows:
        """Some of the rows."""
        free = None if self.free is None else self.free[index]
        return Rows(
            self.D[index], self.Z[index], self.b[index], free, self.norms[index], self.scale
        )

    def gram(self) -> Float:
        """(m, m), <D_j z_j', D_k z_k'> = (D D') ∘ (Z Z')."""
        return (self.D @ self.D.T) * (self.Z @ self.Z.T)

    def matrix(self) -> Float:
        """(m, d·d), the rows written out."""
        return (self.D[:, :, None] * self.Z[:, None, :]).reshape(len(self), -1)

    def combine(self, multipliers: Float) -> Float:
        """(d, d), Σ_j λ_j D_j z_j'."""
        return self.D.T @ (multipliers[:, None] * self.Z)

    def values(self, W: Float) -> Float:
        """(m,), D_j' W z_j."""
        return ((self.D @ W) * self.Z).sum(1)


# Certificates square products of tokens and queries: their fourth powers have to fit float64.
_LARGEST = 1e70


def _power_of_two(size: float) -> float:
    """A scale near `size` that costs no rounding."""
    return float(2.0 ** np.ceil(np.log2(size))) if size > 0 else 1.0


def normalised(D: Float, Z: Float, right: Float, free: Bool | None = None) -> Rows:
    """Rows from differences D (m, d), queries Z (m, d) and right-hand sides (m,)."""
    dn = np.sqrt((D * D).sum(1))
    zn = np.sqrt((Z * Z).sum(1))
    norms = dn * zn
    safe = np.where(norms > 0, norms, 1.0)
    b = right / safe
    scale = _power_of_two(float(np.abs(b).max(initial=0.0)))
    return Rows(
        D / np.where(dn > 0, dn, 1.0)[:, None],
        Z / np.where(zn > 0, zn, 1.0)[:, None],
        b / scale,
        free,
        norms,
        scale,
    )


@dataclass(slots=True)
class Instances:
    """Checked arguments with a leading axis: (B, n, T, d), (B, n, d), (B, n) and (B, n, T)."""

    X: Float
    Z: Float
    tokens: Int
    mask: Bool | None

    def __len__(self) -> int:
        return self.X.shape[0]

    def piece(self, start: int, stop: int) -> Instances:
        """Instances start … stop − 1."""
        mask = None if self.mask is None else self.mask[start:stop]
        return Instances(self.X[start:stop], self.Z[start:stop], self.tokens[start:stop], mask)


@dataclass(slots=True)
class Batch:
    """Instances of one size with the differences x_{i,α_i} − x_it ready.

    Parameters
    ----------
    X, Z, tokens
        (B, n, T, d), (B, n, d) and (B, n), as given.
    D
        (B, n, T, d), token differences.
    valid
        (B, n, T) bool, where there is a constraint: the token exists and is not the selected one.
    """

    X: Float
    Z: Float
    tokens: Int
    mask: Bool | None
    D: Float
    valid: Bool

    def __len__(self) -> int:
        return self.X.shape[0]

    @classmethod
    def of(cls, instances: Instances) -> Batch:
        """Build the differences."""
        X, Z, tokens, mask = instances.X, instances.Z, instances.tokens, instances.mask
        selected = (np.arange(len(X))[:, None], np.arange(X.shape[1]), tokens)
        D = X[selected][:, :, None] - X
        valid = np.ones(X.shape[:3], dtype=bool) if mask is None else mask.copy()
        valid[selected] = False
        if mask is not None:
            # What stands at a masked place is nobody's token.
            D = np.where(mask[..., None], D, 0.0)
        return cls(X, Z, tokens, mask, D, valid)

    def rows(self) -> Iterator[tuple[Int, Rows]]:
        """For each instance the flat places (m,) of its constraints in (n, T), and its rows."""
        B, n, T, d = self.X.shape
        dn = np.sqrt(np.einsum("bntd,bntd->bnt", self.D, self.D))
        zn = np.sqrt(np.einsum("bnd,bnd->bn", self.Z, self.Z))
        unit_D = (self.D / np.where(dn > 0, dn, 1.0)[..., None]).reshape(B, n * T, d)
        unit_Z = self.Z / np.where(zn > 0, zn, 1.0)[..., None]
        norms = (dn * zn[..., None]).reshape(B, n * T)
        valid = self.valid.reshape(B, n * T)
        for i in range(B):
            places = valid[i].nonzero()[0]
            length = norms[i].take(places)
            b = np.divide(1.0, length, out=np.ones_like(length), where=length > 0)
            scale = _power_of_two(float(b.max())) if len(places) else 1.0
            yield (
                places,
                Rows(
                    unit_D[i].take(places, 0),
                    unit_Z[i].take(places // T, 0),
                    b / scale,
                    None,
                    length,
                    scale,
                ),
            )


def check_size(name: str, value: Float) -> None:
    """Refuse numbers whose products of four overflow or vanish.

    Raises
    ------
    ArgumentError
        If the largest entry is above 1e70, or below 1e-70 and not zero.
    """
    top = max(float(value.max()), -float(value.min()))
    if top > _LARGEST or 0.0 < top < 1.0 / _LARGEST:
        raise ArgumentError(name, "entries of size 1e-70 to 1e70, or zero", f"size {top:.1e}")


def read(X: Any, Z: Any, tokens: Any, mask: Any, many: bool) -> Instances:
    """Check the arguments of a solver.

    Raises
    ------
    ArgumentError
        If shapes do not fit together, a number is not finite, an index is out of range, a selected
        token is masked, or there is no instance, sequence, token or dimension.
    """
    lead = "(instances, n, T, d)" if many else "(n, T, d)"
    X = _checks.array("X", X)
    if X.ndim != (4 if many else 3):
        raise ArgumentError("X", f"tokens of shape {lead}", f"shape {X.shape}")
    if 0 in X.shape:
        raise ArgumentError("X", "at least one of everything", f"shape {X.shape}")
    *_, n, T, d = X.shape
    batch = X.shape[:-3]
    Z = _checks.array("Z", Z, shape=(*batch, n, d))
    check_size("X", X)
    check_size("Z", Z)
    tokens = _checks.integers("tokens", tokens, shape=(*batch, n), low=0, high=T)
    if mask is not None:
        mask = _checks.booleans("mask", mask, shape=(*batch, n, T))
    if not many:
        X, Z, tokens = X[None], Z[None], tokens[None]
        mask = None if mask is None else mask[None]
    if mask is not None and not np.take_along_axis(mask, tokens[..., None], axis=2).all():
        raise ArgumentError("mask", "True at every selected token", "a selected token is masked")
    return Instances(X, Z, tokens, mask)
