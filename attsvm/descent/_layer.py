"""The attention layer of a chunk of instances as torch tensors, and its two parameterisations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from attsvm._typing import ArrayLike
from attsvm.heads import Head, LinearHead
from attsvm.problem import AttentionProblem


@dataclass(frozen=True, eq=False)
class Layer:
    """What stays fixed during descent; one leading instance axis of length B.

    Attributes
    ----------
    tokens, queries, labels
        X (B n, T, d), z (B, n, d), Y (B, n).
    head
        The prediction head, its parameters as tensors.
    absent
        (B, n, T), True where the mask removes a token; None if all exist.
    scores
        γ (B, n, T) for the linear head, where they are the gradient of the margin with respect to
        the attention weights; None for other heads.  Absent tokens have score 0, their weight is 0.
    ties
        Whether two tokens of one sequence have the same score (or the head is not linear, so that
        they may come to).
    """

    tokens: Tensor
    queries: Tensor
    labels: Tensor
    head: Head
    absent: Tensor | None
    scores: Tensor | None
    ties: bool

    @classmethod
    def of(cls, problem: AttentionProblem, device: torch.device) -> Layer:
        """Copy a problem with exactly one instance axis to `device`."""

        def convert(value: ArrayLike) -> Tensor:
            return torch.tensor(np.ascontiguousarray(value), device=device)

        absent = None if problem.mask is None else convert(~problem.mask)
        scores, ties = None, True
        if isinstance(problem.head, LinearHead):
            gamma = problem.scores()
            ordered = np.sort(gamma, -1)
            ties = bool((ordered[..., 1:] == ordered[..., :-1]).any())
            scores = convert(gamma)
            if absent is not None:
                scores.masked_fill_(absent, 0.0)
        return cls(
            tokens=convert(problem.tokens).flatten(0, 1),
            queries=convert(problem.queries),
            labels=convert(problem.labels),
            head=problem.head.to(convert),
            absent=absent,
            scores=scores,
            ties=ties,
        )

    def along(self, vectors: Tensor) -> Tensor:
        """x_it'u_i for all t: (B, n, d) -> (B, n, T)."""
        B, n, d = vectors.shape
        return torch.bmm(self.tokens, vectors.reshape(B * n, d, 1)).view(B, n, -1)

    def mix(self, weights: Tensor) -> Tensor:
        """X_i'p_i, the tokens weighted by p: (B, n, T) -> (B, n, d)."""
        B, n, T = weights.shape
        return torch.bmm(weights.view(B * n, 1, T), self.tokens).view(B, n, -1)

    def logits(self, keys: Tensor) -> Tensor:
        """x_it'u_i for u = W z (B, d, n): (B, n, T), −∞ at absent tokens."""
        logits = self.along(keys.mT)
        return logits if self.absent is None else logits.masked_fill_(self.absent, -torch.inf)

    def answer(self, output: Tensor) -> tuple[Tensor, Tensor]:
        """Margin Y h(o) (B, n) and its gradient Y ∇h(o) (B, n, d), for outputs o (B, n, d)."""
        slope = self.head.gradient(output) * self.labels[..., None]
        return self.labels * self.head.value(output), slope

    def margins(self, attention: Tensor) -> Tensor:
        """Y_i h(o_i) for the attention weights s (B, n, T): (B, n)."""
        if self.scores is not None:
            return (attention * self.scores).sum(-1)
        return self.labels * self.head.value(self.mix(attention))


class Full:
    """W (B, d, d) itself: ∇_W L = Σ_i (X_i'p_i) z_i'."""

    def __init__(self, W: Tensor) -> None:
        self.arrays = [W]

    def logits(self, layer: Layer) -> Tensor:
        """a = X W z (B, n, T)."""
        return layer.logits(torch.bmm(self.arrays[0], layer.queries.mT))

    def gradients(self, layer: Layer, p: Tensor) -> list[Tensor]:
        """One gradient for each array, from p = ∂L/∂a (B, n, T) at the last `logits` call."""
        return [torch.bmm(layer.mix(p).mT, layer.queries)]

    def matrix(self) -> Tensor:
        """W."""
        return self.arrays[0]


class Factored:
    """K and Q (B, d, m), as `Full`: ∇_K L = ∇_W L Q, ∇_Q L = (∇_W L)'K, and W is never formed."""

    def __init__(self, K: Tensor, Q: Tensor) -> None:
        self.arrays = [K, Q]
        self._queries = K[:, :0]

    def logits(self, layer: Layer) -> Tensor:
        K, Q = self.arrays
        self._queries = torch.bmm(layer.queries, Q)
        return layer.logits(torch.bmm(K, self._queries.mT))

    def gradients(self, layer: Layer, p: Tensor) -> list[Tensor]:
        mixed = layer.mix(p)
        onto = torch.bmm(mixed, self.arrays[0])
        return [torch.bmm(mixed.mT, self._queries), torch.bmm(layer.queries.mT, onto)]

    def matrix(self) -> Tensor:
        K, Q = self.arrays
        return torch.bmm(K, Q.mT)


Weights: TypeAlias = Full | Factored
