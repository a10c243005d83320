"""The attention problem: tokens, queries, labels and a prediction head (Section 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from attsvm import _checks
from attsvm._typing import BoolArray, FloatArray, IntArray
from attsvm.errors import ArgumentError
from attsvm.heads import Head, LinearHead, stack_heads

__all__ = ["AttentionProblem", "stack"]


@dataclass(frozen=True, eq=False)
class AttentionProblem:
    """One data set for f(X, z) = h(X' S(X W z)) (Section 2), or many of the same size side by side.

    Parameters
    ----------
    tokens
        X (…, n, T, d): n sequences of T tokens in dimension d.
    queries
        z (…, n, d).  Self-attention: a row of X; cross-attention: free.
    labels
        Y (…, n), each −1 or +1.
    head
        Prediction head h; its parameters carry the same leading axes or none.
    mask
        (…, n, T), True where a token exists; None: all exist.

    Raises
    ------
    ArgumentError
        If shapes do not fit together, a number is not finite, a label is not ±1, or a sequence or
        the whole has no token.
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
        if (other := labels[np.abs(labels) != 1.0]).size:
            raise ArgumentError("labels", "each −1 or +1", f"{other[0]}")
        if not isinstance(self.head, Head):
            raise ArgumentError("head", "a head of attsvm.heads", type(self.head).__name__)
        if self.head.d != d:
            raise ArgumentError("head", f"parameters of dimension d = {d}", f"d = {self.head.d}")
        if self.head.batch_shape not in ((), tuple(batch)):
            expected = f"leading axes {tuple(batch)} or none"
            raise ArgumentError("head", expected, f"{self.head.batch_shape}")
        mask = self.mask
        if mask is not None:
            mask = _checks.booleans("mask", mask, shape=(*batch, n, T))
            if (empty := np.argwhere(~mask.any(-1))).size:
                where = tuple(empty[0].tolist())
                raise ArgumentError("mask", "a token in every sequence", f"none at index {where}")
        vars(self).update(tokens=tokens, queries=queries, labels=labels, mask=mask)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Leading instance axes; () for a single instance."""
        return self.tokens.shape[:-3]

    @property
    def n(self) -> int:
        """Number of sequences."""
        return self.tokens.shape[-3]

    @property
    def T(self) -> int:
        """Number of tokens in a sequence."""
        return self.tokens.shape[-2]

    @property
    def d(self) -> int:
        """Dimension of a token."""
        return self.tokens.shape[-1]

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

        Raises
        ------
        ArgumentError
            If the problem has no instance axis or the index is out of range.
        """
        if not self.batch_shape:
            raise ArgumentError("index", "a problem with an instance axis", "a single instance")
        try:
            return self.mapped(lambda array: array[index], self.head.instance(index))
        except IndexError as error:
            raise ArgumentError("index", f"0..{len(self) - 1}", str(index)) from error

    def mapped(self, change: Callable[[np.ndarray], np.ndarray], head: Head) -> AttentionProblem:
        """The problem with another head, and with each of its arrays changed."""
        mask = None if self.mask is None else change(self.mask)
        tokens, queries, labels = map(change, (self.tokens, self.queries, self.labels))
        return AttentionProblem(tokens, queries, labels, head, mask)

    def scores(self) -> FloatArray:
        """Token scores γ_it = Y_i h(x_it) (Section 2).

        For the linear head Y_i v'x_it, for other heads the prediction a token would give alone.

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
        found = ", ".join(sorted(f"{kind.__name__} {shape}" for kind, shape, _ in kinds))
        raise ArgumentError("problems", "one kind of head and one shape", found)
    masks = [p.mask for p in items if p.mask is not None]  # all or none, as checked above
    return AttentionProblem(
        tokens=np.stack([p.tokens for p in items]),
        queries=np.stack([p.queries for p in items]),
        labels=np.stack([p.labels for p in items]),
        head=stack_heads([p.head for p in items]),
        mask=np.stack(masks) if masks else None,
    )


def linear_head(problem: AttentionProblem, axes: int | None = None) -> LinearHead:
    """The head of a problem that must be linear, and have so many instance axes."""
    if axes is not None:
        require_axes(problem, axes)
    if not isinstance(problem.head, LinearHead):
        raise ArgumentError("problem", "a linear head", type(problem.head).__name__)
    return problem.head


def require_axes(problem: AttentionProblem, count: int) -> None:
    """Insist on a problem with no instance axis, or with one."""
    if not isinstance(problem, AttentionProblem):
        raise ArgumentError("problem", "an AttentionProblem", type(problem).__name__)
    if len(problem.batch_shape) != count:
        expected = ("a single instance", "instances along one leading axis")[count]
        raise ArgumentError("problem", expected, f"instance axes {problem.batch_shape}")
