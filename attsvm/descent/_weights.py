"""The two parameterisations: attention weights W, or W = K Q' (Section 2)."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from attsvm.descent._layer import Layer

__all__ = ["Factored", "Full", "Weights"]


class Weights(Protocol):
    """Parameter arrays (B, d, ·), the logits they give, and the chain rule back to them."""

    arrays: list[Tensor]

    def logits(self, layer: Layer) -> Tensor:
        """a = X W z, (B, n, T), −∞ at absent tokens."""

    def gradients(self, layer: Layer, p: Tensor) -> list[Tensor]:
        """One gradient for each array, from ∂L/∂a (B, n, T) at the last `logits` call."""

    def matrix(self) -> Tensor:
        """W (B, d, d)."""


class Full:
    """W itself: ∇_W L = Σ_i (X_i'p_i) z_i'."""

    def __init__(self, W: Tensor) -> None:
        self.arrays = [W]

    def logits(self, layer: Layer) -> Tensor:
        return layer.hide(layer.along(torch.bmm(self.arrays[0], layer.queries.mT).mT))

    def gradients(self, layer: Layer, p: Tensor) -> list[Tensor]:
        return [torch.bmm(layer.mix(p).mT, layer.queries)]

    def matrix(self) -> Tensor:
        return self.arrays[0]


class Factored:
    """K and Q (B, d, m): ∇_K L = ∇_W L Q, ∇_Q L = (∇_W L)'K; W is never formed on the way."""

    def __init__(self, K: Tensor, Q: Tensor) -> None:
        self.arrays = [K, Q]
        self._queries = K[:, :0]

    def logits(self, layer: Layer) -> Tensor:
        K, Q = self.arrays
        self._queries = torch.bmm(layer.queries, Q)
        return layer.hide(layer.along(torch.bmm(K, self._queries.mT).mT))

    def gradients(self, layer: Layer, p: Tensor) -> list[Tensor]:
        K, _ = self.arrays
        mixed = layer.mix(p)
        return [
            torch.bmm(mixed.mT, self._queries),
            torch.bmm(layer.queries.mT, torch.bmm(mixed, K)),
        ]

    def matrix(self) -> Tensor:
        K, Q = self.arrays
        return torch.bmm(K, Q.mT)
