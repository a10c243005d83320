"""Gradient of the loss with respect to the logits, in two arithmetics.

With attention weights s_i, output o_i = X_i's_i, margin u_i = Y_i h(o_i), loss L = (1/n) Σ ℓ(u_i)
and the token gradients g_it = Y_i x_it'∇h(o_i), the chain rule gives

    ∂L/∂a_it = (1/n) ℓ'(u_i) s_it (g_it − Σ_τ s_iτ g_iτ).

`published` evaluates this the way automatic differentiation does.  Once s_i is within 1e-16 of one
token, the bracket of that token cancels to rounding noise, and the weights themselves underflow.

`exact` writes the same number so that nothing cancels or underflows.  Let top_i be the token of
largest logit, δ_it = g_it − g_i,top, and let e^c be one factor per instance.  Then

    q_it = e^{−c} |ℓ'(u_i)| s_it δ_it,      ∂L/∂a_it = (e^c/n) (s_it Σ_τ q_iτ − q_it):

the bracket is δ_it − Σ s δ, whose sum has no large term, because δ of the top token is zero.
log|ℓ'| + log s − c is added up in log space before the one exponential, so q has entries of order
one however small the weights are.  For the top token the formula reads +s_top Σ q, which is minus
the sum of the other tokens' gradients.  c is the largest log|ℓ'| + log s over tokens with δ ≠ 0.

What remains limited by float64: δ itself.  Two tokens that *stay* selected together (nonlinear
heads) do so because δ − Σ s δ tends to zero between them; that difference is known to about 1e-16
of g and no better, so gradients below that level, relative to the largest, are rounding noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attsvm.descent._layer import Layer

# The authors' constant: added to every gradient norm, and the ridge of their (K, Q) run.
EPSILON = 2.22e-16


@dataclass(frozen=True, eq=False)
class LogitGradient:
    """∂L/∂a = e^c p with p (B, n, T) and log scale c (B,); L − L* = e^c gap (B,) if asked for."""

    p: Tensor
    log_scale: Tensor
    gap: Tensor | None = None


def logistic(margin: Tensor) -> Tensor:
    """ℓ(u) = log(1 + e^{−u}) without overflow.

    Written out because torch's softplus cuts off at 20, which costs nine digits, and because (like
    its sigmoid) it rounds the last entries of a tensor differently: runs would depend on chunks.
    """
    return torch.log1p(torch.exp(-margin.abs())).add_((-margin).clamp_(min=0.0))


def sigmoid(x: Tensor) -> Tensor:
    """1/(1 + e^{−x}), rounded the same wherever the entry stands in the tensor."""
    return torch.exp(-x).add_(1.0).reciprocal_()


def softmax(logits: Tensor) -> Tensor:
    """Attention weights s (B, n, T), the softmax of the logits over tokens.

    For rows this short, much faster than torch's own kernel.
    """
    weights = (logits - logits.amax(-1, keepdim=True)).exp_()
    return weights.div_(weights.sum(-1, keepdim=True))


def published(layer: Layer, logits: Tensor, optimum: Tensor | None = None) -> LogitGradient:
    """The authors' arithmetic: softmax forward, softmax backward, as autograd computes them.

    From the logits a = X W z (B, n, T), −∞ at absent tokens; given L* (B,) also L − L*.
    """
    s = softmax(logits)
    margin, slope = layer.answer(layer.mix(s))
    # d/du (1/n) log(1 + e^{-u}), times Y ∇h(o): the gradient that arrives at the output o.
    grad_s = layer.along(slope * sigmoid(-margin).div_(-margin.shape[-1])[..., None])
    p = grad_s.sub_((grad_s * s).sum(-1, keepdim=True)).mul_(s)
    gap = None if optimum is None else logistic(margin).mean(-1) - optimum
    return LogitGradient(p, p.new_zeros(p.shape[0]), gap)


def exact(layer: Layer, logits: Tensor, optimum: Tensor | None = None) -> LogitGradient:
    """The same gradient without cancellation or underflow, scaled by one factor per instance.

    For the linear head `optimum` is the best score max_t γ_it (B, n), and L − L* is as exact; for
    other heads it is L* (B,), which is subtracted.
    """
    height, top = logits.max(-1, keepdim=True)
    relative = logits - height
    s = relative.exp()
    total = s.sum(-1, keepdim=True)
    s.div_(total)
    if layer.scores is not None:
        margin = (s * layer.scores).sum(-1)
        g = layer.scores
    else:
        margin, slope = layer.answer(layer.mix(s))
        g = layer.along(slope)
    delta = g - g.gather(-1, top)
    # log|ℓ'| = −log(1 + e^u); log s = a − a_top − log Σ.
    log_weight = relative.sub_(total.log_().add_(logistic(-margin)[..., None]))
    # The top token, whose δ is 0, must not set the common factor; nor must exact ties with it.
    if layer.ties:
        log_weight.masked_fill_(delta == 0, -torch.inf)
    else:
        log_weight.scatter_(-1, top, -torch.inf)
    c = log_weight.amax((-2, -1))
    c.masked_fill_(c == -torch.inf, 0.0)  # every token has the same score: the gradient is zero
    q = log_weight.sub_(c[:, None, None]).exp_().mul_(delta)
    drift = q.sum(-1, keepdim=True)
    gap = None
    if optimum is not None:
        if layer.scores is None:
            gap = (logistic(margin).mean(-1) - optimum) * torch.exp(-c)
        else:
            behind = optimum - layer.scores.gather(-1, top)[..., 0]
            gap = _gap(margin, optimum, behind - (s * delta).sum(-1), behind == 0, drift[..., 0], c)
    p = s.mul_(drift).sub_(q)
    return LogitGradient(p, c.sub_(math.log(logits.shape[-2])), gap)


def _gap(
    margin: Tensor, best: Tensor, shortfall: Tensor, ahead: Tensor, drift: Tensor, c: Tensor
) -> Tensor:
    """e^{−c} Σ_i [ℓ(u_i) − ℓ(u*_i)] for the linear head, where u* is the best score.

    This is `metrics.log_gap` for a Polyak step, in the scale of the gradient and from terms that it
    has in hand.  The shortfall u* − u is (γ* − γ_top) − Σ s δ.  With x = σ(−u*) (e^{u*−u} − 1) the
    bracket equals log(1 + x), which tends to σ(−u*) (u* − u) when the shortfall is too small for a
    float; then, where the best token is ahead, Σ s δ = e^c drift/|ℓ'(u)| supplies the digits.
    """
    x = sigmoid(-best) * torch.expm1(shortfall.clamp(max=700.0))
    difference = torch.where(shortfall > 700.0, logistic(margin) - logistic(best), torch.log1p(x))
    tiny = ahead & (shortfall < 1e-100)
    return torch.where(tiny, -drift, difference * torch.exp(-c)[:, None]).sum(-1)
