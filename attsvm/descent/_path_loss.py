"""log(L − L*) of the linear head with first and second derivatives, in exact arithmetic."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_expit, logsumexp

from attsvm._linalg import span
from attsvm._typing import FloatArray as Array
from attsvm.metrics._log_gap import log_excess
from attsvm.problem import AttentionProblem


class LogGap:
    """φ(W) = log(L(W) − L*) with L* = (1/n) Σ ℓ(γ_i,opt), a smooth function wherever W is finite.

    L and φ have the same minimisers over any set, and φ has derivatives of order one where those of
    L are below the smallest float.  With Δ_it = γ_i,opt − γ_it ≥ 0, S_i = Σ_t s_it Δ_it (so that
    u_i = γ_i,opt − S_i) and σ_i = 1/(1 + e^{u_i}):

        n (L − L*) = Σ_i log(1 + (e^{S_i} − 1)/(1 + e^{γ_i,opt})),
        r_it = σ_i s_it Δ_it / (n e^φ),   ρ_i = Σ_t r_it,
        ∂φ/∂a_it = r_it − s_it ρ_i,

    where all terms are positive and are formed in log space.  The Hessian is, with g = ∂φ/∂a,
    diag(g_i) − g_i s_i' − s_i g_i' + n e^{u_i + φ} g_i g_i' in each block, minus g g' over all.

    W enters through coordinates C = U'W V in orthonormal bases U of the token differences and V of
    the queries: nothing outside them changes L, and every minimiser over a ball lies in them.

    `limit` is what φ tends to where the optimal tokens win by large margins,
    log Σ_i σ(−γ_i,opt) Σ_t Δ_it exp(a_it − a_i,opt) / n, which is convex.
    """

    def __init__(self, problem: AttentionProblem) -> None:
        gamma = problem.scores()
        n, T = gamma.shape
        best = gamma.argmax(-1)
        rows = np.arange(n)
        self._best_score = gamma[rows, best]
        delta = self._best_score[:, None] - gamma
        exists = np.isfinite(delta)
        with np.errstate(divide="ignore"):
            self._log_delta = np.where(exists, np.log(np.where(exists, delta, 1.0)), -np.inf)
        self._exists = exists
        differences = problem.tokens - problem.tokens[rows, best][:, None]
        differences[~exists] = 0.0
        self._left = span(differences.reshape(n * T, -1))  # U (d, p)
        self._right = span(problem.queries)  # V (d, q)
        self.shape = self._left.shape[1], self._right.shape[1]
        tokens, queries = differences @ self._left, problem.queries @ self._right
        # a_it = <features_it, C>.
        products = tokens[..., :, None] * queries[:, None, None, :]
        self._features = products.reshape(n, T, math.prod(self.shape))

    @property
    def constant(self) -> bool:
        """Whether L is the same for all W: no two scores differ, or no token can be told apart."""
        return 0 in self.shape or not np.isfinite(self._log_delta).any()

    def limit(self, coordinates: Array) -> tuple[float, Array, Array]:
        """The convex limit of φ, its gradient (p, q) and its Hessian (pq, pq) at C (p, q)."""
        n = len(self._best_score)
        # Differences are taken to the optimal token: its own logit is 0.
        log_r = self._features @ coordinates.ravel() + self._log_delta
        log_r += log_expit(-self._best_score)[:, None]
        phi = float(logsumexp(log_r))
        r = np.exp(log_r - phi)
        gradient = np.einsum("it,itk->k", r, self._features)
        hessian = np.einsum("it,itk,itl->kl", r, self._features, self._features, optimize=True)
        hessian -= np.outer(gradient, gradient)
        return phi - float(np.log(n)), gradient.reshape(self.shape), hessian

    def __call__(self, coordinates: Array) -> tuple[float, Array, Array]:
        """φ, its gradient (p, q) and its Hessian (pq, pq) at C (p, q)."""
        n = len(self._best_score)
        a = self._features @ coordinates.ravel()
        a[~self._exists] = -np.inf
        log_s = a - logsumexp(a, axis=-1, keepdims=True)
        s = np.exp(log_s)
        log_S = logsumexp(log_s + self._log_delta, axis=-1)
        S = np.exp(log_S)
        u = self._best_score - S
        phi = float(logsumexp(log_excess(self._best_score, log_S)) - np.log(n))
        log_sigma = log_expit(-u) - phi - np.log(n)
        r = np.exp(log_sigma[:, None] + log_s + self._log_delta)
        g = r - s * np.exp(log_sigma + log_S)[:, None]
        gradient = np.einsum("it,itk->k", g, self._features)
        mean = np.einsum("it,itk->ik", s, self._features)
        each = np.einsum("it,itk->ik", g, self._features)
        cross = each.T @ mean
        hessian = np.einsum("it,itk,itl->kl", g, self._features, self._features, optimize=True)
        hessian -= cross + cross.T
        hessian += (each * (n * np.exp(u + phi))[:, None]).T @ each
        hessian -= np.outer(gradient, gradient)
        return phi, gradient.reshape(self.shape), hessian

    def weights(self, coordinates: Array) -> Array:
        """W = U C V'."""
        return self._left @ coordinates @ self._right.T

    def coordinates(self, W: Array) -> Array:
        """C = U'W V, the part of W that matters."""
        return self._left.T @ W @ self._right
