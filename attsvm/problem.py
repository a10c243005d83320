"""The attention problem: tokens, queries, labels and a prediction head (Section 2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from attsvm import _checks
from attsvm._typing import BoolArray, FloatArray, IntArray
from attsvm.errors import ArgumentError
from attsvm.heads import Head, stack_heads

__all__ = ["AttentionProblem", "stack"]


@dataclass(frozen=True, eq=False)
class AttentionProblem:
    """One data set of the paper, or many of the same size side by side.

    The attention layer answers f(X, z) = h(X' S(X W z)) with the softmax S (Section 2).

    Parameters
    ----------
    tokens
        X, shape (…, n, T, d): n sequences of T tokens in dimension d.
    queries
        z, shape (…, n, d). Self-attention: a row of X; cross-attention: free.
    labels
        Y, shape (…, n), each −1 or +1.
    head
        Prediction head h; its parameters carry the same leading axes or none.
    mask
        (…, n, T), True where a token exists; None: all exist.

    Raises
    ------
    ArgumentError
        If shapes do not fit together, a number is not finite, a label is not ±1, a sequence has no
        token, or there is no instance, sequence or token at all.
    """

    tokens: FloatArray
    queries: FloatArray
    labels: FloatArray
    head: Head
    mask: BoolArray | None = None

    def __post_init__(self) -> None:
        tokens = _checks.array("tokens", self.tokens)
        if tokens.ndim < 3:
            raise ArgumentError("tokens", "shape (…, n, T, d)", f"shape {tokens.shape}")
        if 0 in tokens.shape:
            raise ArgumentError("tokens", "at least one of everything", f"shape {tokens.shape}")
        *batch, n, T, d = tokens.shape
        queries = _checks.array("queries", self.queries, shape=(*batch, n, d))
        labels = _checks.array("labels", self.labels, shape=(*batch, n))
        if not np.isin(labels, (-1.0, 1.0)).all():
            other = labels[~np.isin(labels, (-1.0, 1.0))][0]
            raise ArgumentError("labels", "each −1 or +1", f"{other}")
        if not isinstance(self.head, Head):
            raise ArgumentError("head", "a head of attsvm.heads", type(self.head).__name__)
        if self.head.d != d:
            raise ArgumentError("head", f"parameters of dimension d = {d}", f"d = {self.head.d}")
        if self.head.batch_shape not in ((), tuple(batch)):
            raise ArgumentError(
                "head", f"leading axes {tuple(batch)} or none", f"{self.head.batch_shape}"
            )
        mask = self.mask
        if mask is not None:
            mask = _checks.booleans("mask", mask, shape=(*batch, n, T))
            if not mask.any(-1).all():
                where = tuple(int(i) for i in np.argwhere(~mask.any(-1))[0])
                raise ArgumentError("mask", "a token in every sequence", f"none at index {where}")
        checked = {"tokens": tokens, "queries": queries, "labels": labels, "mask": mask}
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Leading instance axes; () for a single instance."""
        return tuple(self.tokens.shape[:-3])

    @property
    def n(self) -> int:
        """Number of sequences."""
        return int(self.tokens.shape[-3])

    @property
    def T(self) -> int:
        """Number of tokens in a sequence."""
        return int(self.tokens.shape[-2])

    @property
    def d(self) -> int:
        """Dimension of a token."""
        return int(self.tokens.shape[-1])

    def __len__(self) -> int:
        if not self.batch_shape:
            raise TypeError("a single instance has no length; use n, T or d")
        return self.batch_shape[0]

    def instance(self, index: int | slice | IntArray) -> AttentionProblem:
        """One instance or some along the leading axis.

        Parameters
        ----------
        index
            An integer, which takes the axis away, or a slice or an index array.

        Returns
        -------
        AttentionProblem

        Raises
        ------
        ArgumentError
            If the problem has no instance axis or the index is out of range.
        """
        if not self.batch_shape:
            raise ArgumentError("index", "a problem with an instance axis", "a single instance")
        try:
            return replace(
                self,
                tokens=self.tokens[index],
                queries=self.queries[index],
                labels=self.labels[index],
                head=self.head.instance(index),
                mask=None if self.mask is None else self.mask[index],
            )
        except IndexError as error:
            raise ArgumentError("index", f"0..{len(self) - 1}", str(index)) from error

    def scores(self) -> FloatArray:
        """Token scores γ_it = Y_i h(x_it) (Section 2).

        For the linear head this is the paper's Y_i v'x_it. For other heads it is the prediction a
        token would give alone.

        Returns
        -------
        ndarray
            γ (…, n, T); −∞ at tokens that the mask removes.
        """
        gamma = self.labels[..., None] * np.asarray(self.head.value(self.tokens))
        return gamma if self.mask is None else np.where(self.mask, gamma, -np.inf)


def stack(problems: Iterable[AttentionProblem]) -> AttentionProblem:
    """Put single instances of one size side by side along a new leading axis.

    Parameters
    ----------
    problems
        At least one, all with heads of one kind and tokens (n, T, d) of one shape.

    Returns
    -------
    AttentionProblem
        Tokens (problems, n, T, d).

    Raises
    ------
    ArgumentError
        If there is none, or they differ in shape or in the kind of head.
    """
    items = list(problems)
    if not items:
        raise ArgumentError("problems", "at least one problem", "none")
    kinds = {(type(p.head), p.tokens.shape, p.mask is None) for p in items}
    if len(kinds) > 1:
        raise ArgumentError(
            "problems",
            "one kind of head and one shape",
            ", ".join(sorted(f"{kind.__name__} {shape}" for kind, shape, _ in kinds)),
        )
    masks = [p.mask for p in items if p.mask is not None]  # all or none, as checked above
    return AttentionProblem(
        tokens=np.stack([p.tokens for p in items]),
        queries=np.stack([p.queries for p in items]),
        labels=np.stack([p.labels for p in items]),
        head=stack_heads([p.head for p in items]),
        mask=np.stack(masks) if masks else None,
    )
