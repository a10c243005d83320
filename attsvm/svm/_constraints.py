"""The margin constraints of the Att-SVM as normalised rows.

Every constraint of the paper's programs has rank one: with the token difference D_j and the query
z_j, a_j(W) = D_j' W z_j = <D_j z_j', W>.  The solvers work on *normalised* rows, ‖D_j‖ = ‖z_j‖ = 1,
and move the lengths to the right-hand side: a_j(W) ≥ 1 becomes <D_j z_j', W> ≥ 1/(‖D_j‖‖z_j‖).
Without that, tokens scaled by 1e±6 or queries of very different length drown in rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from attsvm import _checks
from attsvm._typing import Array, ArrayLike, Bool, BoolArray, Float, FloatArray, Int, IntArray
from attsvm.errors import ArgumentError

# Certificates square products of tokens and queries: products of four must not overflow or vanish.
_LARGEST = 1e70


@dataclass(slots=True)
class Rows:
    """Normalised constraints <D_j z_j', W> ≥ b_j, or = b_j where `free`: the multiplier's sign is.

    D and Z hold unit vectors (zero stays zero), `norms` the ‖D_j‖‖z_j‖ of the rows as given, whose
    solution is W = scale · Ŵ.  `plain` rows are those of the Att-SVM, which knows no equality.
    """

    D: Float[Array, "m d"]
    Z: Float[Array, "m e"]
    b: Float[Array, " m"]
    free: Bool[Array, " m"]
    norms: Float[Array, " m"]
    scale: float
    plain: bool

    def __len__(self) -> int:
        return self.b.shape[0]

    @property
    def lengths(self) -> FloatArray:
        """(m,), `norms`, with 1 for 0: multipliers of these rows / lengths are those as given."""
        return np.where(self.norms > 0, self.norms, 1.0)

    def part(self, index: IntArray | BoolArray) -> Rows:
        """Some of the rows."""
        names = ("D", "Z", "b", "free", "norms")
        return replace(self, **{name: getattr(self, name)[index] for name in names})

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


@dataclass(slots=True)
class Program:
    """Constraints of B programs of one size: D_it' W z_i ≥ 1 at margins, = right_it where equal.

    `right` is 1 at margins and 0 where nothing is asked; `plain` says that no program of this kind
    has equalities.
    """

    D: Float[Array, "B n T d"]
    Z: Float[Array, "B n d"]
    margin: Bool[Array, "B n T"]
    equal: Bool[Array, "B n T"]
    right: Float[Array, "B n T"]
    plain: bool = False

    def _lengths(self, vectors: FloatArray) -> FloatArray:
        # Either sum will do; which one it is decides the last digit of recorded results.
        if self.plain:
            return np.sqrt(np.einsum("...d,...d->...", vectors, vectors))
        return np.sqrt((vectors * vectors).sum(-1))

    def rows(self) -> Iterator[tuple[IntArray, Rows]]:
        """For each program the flat places (m,) of its constraints in (n, T), and its rows."""
        B, n, T, d = self.D.shape
        dn, zn = self._lengths(self.D), self._lengths(self.Z)
        unit_D = (self.D / np.where(dn > 0, dn, 1.0)[..., None]).reshape(B, n * T, d)
        unit_Z = self.Z / np.where(zn > 0, zn, 1.0)[..., None]
        norms = (dn * zn[..., None]).reshape(B, n * T)
        used = (self.margin | self.equal).reshape(B, n * T)
        equal, right = self.equal.reshape(B, n * T), self.right.reshape(B, n * T)
        for i in range(B):
            places = used[i].nonzero()[0]
            length = norms[i].take(places)
            b = right[i].take(places) / np.where(length > 0, length, 1.0)
            size = float(np.abs(b).max(initial=0.0))
            # A power of two costs no rounding.
            scale = float(2.0 ** np.ceil(np.log2(size))) if size > 0 else 1.0
            D, Z = unit_D[i].take(places, 0), unit_Z[i].take(places // T, 0)
            yield places, Rows(D, Z, b / scale, equal[i].take(places), length, scale, self.plain)


@dataclass(slots=True)
class Instances:
    """Checked arguments of B instances."""

    X: Float[Array, "B n T d"]
    Z: Float[Array, "B n d"]
    selected: Int[Array, "B n"]
    mask: Bool[Array, "B n T"] | None

    def pieces(self, size: int) -> list[Instances]:
        """The same, at most `size` at a time."""
        starts = range(size, len(self.X), size)
        X, Z, selected = (np.split(a, starts) for a in (self.X, self.Z, self.selected))
        masks = [None] * len(X) if self.mask is None else np.split(self.mask, starts)
        return [Instances(*parts) for parts in zip(X, Z, selected, masks, strict=True)]

    def program(self) -> Program:
        """A margin for every token that exists and is not the selected one."""
        D = differences(self.X, self.selected)
        margin = np.ones(D.shape[:-1], dtype=bool) if self.mask is None else self.mask.copy()
        np.put_along_axis(margin, self.selected[..., None], False, -1)
        if self.mask is not None:
            # What stands at a masked place is nobody's token.
            D = np.where(self.mask[..., None], D, 0.0)
        return Program(D, self.Z, margin, np.zeros_like(margin), margin.astype(np.float64), True)


def tokens_and_queries(
    X: ArrayLike, Z: ArrayLike, many: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Check X ([B,] n, T, d) and Z ([B,] n, d), with the leading axis if `many`."""
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
    """Check the arguments of a solver; each has a leading axis if `many`."""
    X, Z = tokens_and_queries(X, Z, many)
    *batch, T, _ = X.shape
    selected = _checks.integers("selected", selected, shape=batch, low=0, high=T)
    if mask is not None:
        mask = _checks.booleans("mask", mask, shape=(*batch, T))
        if not np.take_along_axis(mask, selected[..., None], -1).all():
            what = "True at every selected token"
            raise ArgumentError("mask", what, "a selected token is masked")
    if many:
        return Instances(X, Z, selected, mask)
    return Instances(X[None], Z[None], selected[None], None if mask is None else mask[None])
