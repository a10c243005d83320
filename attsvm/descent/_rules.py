"""Step rules: how far to go along the negative gradient.

A rule sees the gradient as e^c g, with g of ordinary size, because the true one may lie far below
the smallest float; the logarithmic scale c differs between instances.  Anything with an `apply` of
this form can be passed to `train` as `rule`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import torch
from torch import Tensor

Arrays: TypeAlias = list[Tensor]


@runtime_checkable
class Rule(Protocol):
    """Updates the parameter arrays of B instances in place."""

    needs_gap: bool
    """Whether `apply` uses the loss above its target."""

    def apply(
        self, step: float, arrays: Arrays, gradients: Arrays, log_scale: Tensor, gap: Tensor | None
    ) -> None:
        """Take one step.

        Parameters
        ----------
        step
            The step size η_k.
        arrays, gradients
            [W (B, d, d)] or [K, Q] (B, d, m), changed in place, and g for each, free to be
            overwritten; ∇L = e^c g.
        log_scale
            c (B,), natural logarithm of the scale that all gradients of an instance share.
        gap
            (B,): the loss above its target is e^c gap.  None unless `needs_gap`.
        """


def _norms(gradient: Tensor) -> Tensor:
    return torch.linalg.vector_norm(gradient, dim=(-2, -1), keepdim=True)


@dataclass(frozen=True)
class Normalized:
    """W ← W − η g/(‖g‖_F + ε), each array (K and Q) with its own norm.

    Parameters
    ----------
    epsilon
        ε; the authors' 2.22e-16, or 0 for exact gradients.  With ε = 0 a gradient that is exactly
        zero (a stationary point) moves nothing.
    """

    epsilon: float = 0.0
    needs_gap = False

    def apply(
        self, step: float, arrays: Arrays, gradients: Arrays, log_scale: Tensor, gap: Tensor | None
    ) -> None:
        for array, gradient in zip(arrays, gradients, strict=True):
            norm = _norms(gradient)
            if self.epsilon:
                array.sub_(gradient.div_(norm.add_(self.epsilon)).mul_(step))
                continue
            tiny = torch.finfo(norm.dtype).tiny
            faint = norm < 1e-140
            if faint.any():
                # Squares below 1e-308 vanish: bring such gradients to size one first.
                largest = gradient.abs().amax((-2, -1), keepdim=True).clamp_(min=tiny)
                gradient = torch.where(faint, gradient / largest, gradient)
                norm = _norms(gradient)
            # Where the norm is 0 so is the gradient: dividing by the smallest float keeps it 0.
            array.addcmul_(gradient, norm.clamp_(min=tiny).reciprocal_(), value=-step)


@dataclass(frozen=True)
class Plain:
    """W ← W − η e^c g: gradient descent as such, which stalls as the gradient vanishes."""

    needs_gap = False

    def apply(
        self, step: float, arrays: Arrays, gradients: Arrays, log_scale: Tensor, gap: Tensor | None
    ) -> None:
        factor = log_scale.exp()[:, None, None] * step
        for array, gradient in zip(arrays, gradients, strict=True):
            array.sub_(gradient.mul_(factor))


@dataclass(frozen=True)
class Polyak:
    """W ← W − η (L − L*) g/‖g‖², all arrays with one norm; η = 1 is Polyak's own step.

    The common factor e^c drops out: (e^c gap)(e^c g)/(e^c ‖g‖)².

    Parameters
    ----------
    longest
        Upper bound on the length of a step.  Far from the solution the loss is not convex, and the
        rule would jump where the gradient is small and the loss is not.
    """

    longest: float = 10.0
    needs_gap = True

    def apply(
        self, step: float, arrays: Arrays, gradients: Arrays, log_scale: Tensor, gap: Tensor | None
    ) -> None:
        if gap is None:
            raise TypeError("the Polyak rule needs the loss above its target")
        tiny = torch.finfo(gap.dtype).tiny
        norm = torch.stack([_norms(g)[:, 0, 0] for g in gradients]).norm(dim=0).clamp_(min=tiny)
        distance = (gap.clamp(min=0.0) * step / norm).clamp_(max=self.longest)
        factor = (distance / norm)[:, None, None]
        for array, gradient in zip(arrays, gradients, strict=True):
            array.sub_(gradient.mul_(factor))
