"""Instances, and the layer in plain autograd, for the tests of attsvm.descent."""

from __future__ import annotations

import json
from pathlib import Path

import mpmath
import numpy as np
import torch

from attsvm.heads import LinearHead, QuadraticHead, ReLUHead
from attsvm.problem import AttentionProblem

HEADS = ("linear", "relu", "quadratic")
REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "trajectories.json").read_text())


def problem(seed=0, batch=(3,), n=4, T=5, d=6, head="linear", masked=False):
    """Unit tokens and queries, random labels and head."""
    g = np.random.default_rng(seed)
    X, Z = g.normal(size=(*batch, n, T, d)), g.normal(size=(*batch, n, d))
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    Z /= np.linalg.norm(Z, axis=-1, keepdims=True)
    Y = g.choice([-1.0, 1.0], (*batch, n))
    v = g.normal(size=(*batch, d))
    made = {
        "linear": lambda: LinearHead(v),
        "relu": lambda: ReLUHead(g.normal(size=(*batch, d, 4))),
        "quadratic": lambda: QuadraticHead(v, 0.3),
    }[head]()
    mask = None
    if masked:
        mask = g.random((*batch, n, T)) < 0.7
        mask[..., 0] = True
    return AttentionProblem(X, Z, Y, made, mask)


def figure_a(key):
    """Instance A1 or A2 of the reference file, and its record."""
    record = REFERENCE[key]
    X, Z, v = (np.array(record[name]) for name in ("X", "Z", "v"))
    return AttentionProblem(X, Z, np.ones(2), LinearHead(v)), record


def given(arrays):
    """[W] or [K, Q] as `train` takes them."""
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def with_digits(p, W):
    """X, z, s and γ of each sequence (linear head) as mpmath matrices, in its present precision."""
    matrix = mpmath.matrix
    W, v = matrix(W.tolist()), matrix(p.head.v.tolist())
    for X, z, y in zip(p.tokens, p.queries, p.labels, strict=True):
        X, z = matrix(X.tolist()), matrix(z.tolist())
        logits = list(X * (W * z))
        s = matrix([mpmath.exp(a - max(logits)) for a in logits])
        yield X, z, s / sum(s), int(y) * (X * v)


def loss(p, W):
    """L of one instance as torch computes it; W a tensor (d, d)."""
    X, Z, Y = (torch.tensor(a) for a in (p.tokens, p.queries, p.labels))
    logits = torch.einsum("itd,de,ie->it", X, W, Z)
    if p.mask is not None:
        logits = logits.masked_fill(torch.tensor(~p.mask), -torch.inf)
    attention = torch.softmax(logits, -1)
    output = torch.einsum("it,itd->id", attention, X)
    head = p.head.to(torch.tensor)
    if isinstance(p.head, ReLUHead):
        value = torch.relu(output @ head.V).sum(-1)
    else:
        value = output @ head.v
        if isinstance(p.head, QuadraticHead):
            value = value - p.head.ridge * output.square().sum(-1)
    # Not softplus: its cut-off at 20 is an approximation.
    return torch.log1p(torch.exp(-Y * value)).mean()


def autograd(p, arrays, ridge=0.0):
    """Gradients of loss plus ridge for one instance; arrays [W] or [K, Q]."""
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    W = tensors[0] if len(tensors) == 1 else tensors[0] @ tensors[1].T
    value = loss(p, W) + ridge * sum(t.square().sum() for t in tensors)
    return [g.numpy() for g in torch.autograd.grad(value, tensors)]


def cosine(A, B):
    A, B = np.asarray(A, dtype=float), np.asarray(B, dtype=float)
    return float(np.vdot(A, B) / np.linalg.norm(A) / np.linalg.norm(B))
