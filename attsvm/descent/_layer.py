"""The attention layer of a chunk of instances as torch tensors, and its two contractions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attsvm.heads import Head, LinearHead
from attsvm.problem import AttentionProblem

__all__ = ["Layer"]


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

        def convert(value: Any) -> Tensor:
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
        tokens = convert(problem.tokens)
        B, n, T, d = tokens.shape
        return cls(
            tokens=tokens.view(B * n, T, d),
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

    def hide(self, logits: Tensor) -> Tensor:
        """Give absent tokens the logit −∞, in place."""
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
