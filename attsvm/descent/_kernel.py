# ruff: noqa: E741  (l is a lane)
"""Gradient descent as compiled code: eight instances side by side, all steps in one call.

The arrays of the paper's sizes are so small that a torch operation costs more than the arithmetic
in it.  Here the innermost axis of every array holds eight instances, which the processor's vector
unit works on together; none sees another, so that results do not depend on the batch.

`_arithmetic` says what is computed.  The exact gradient takes fewer exponentials than there: with
m_i the largest logit behind the top token's and r_it = a_it − a_i,top, the numbers
e_it = exp(r_it − m_i) serve both the weights s_it = e_it exp(m_i) / Σ and, one factor for each
sequence, q_it = e_it δ_it |ℓ'(u_i)| exp(m_i − c) / Σ.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

# Eight lanes written out become vector instructions by LLVM's pass for straight-line code.
numba.config.SLP_VECTORIZE = 1  # type: ignore[attr-defined]
LANES = 8

_jit = numba.njit(cache=True, fastmath={"contract"}, error_model="numpy", nogil=True)

_LOG2_E, _LN2_HIGH, _LN2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
# Added and taken away again, it rounds to an integer that then stands in the last bits.
_ROUND = 6755399441055744.0
_C = tuple(1.0 / math.factorial(k) for k in range(14))


@intrinsic
def _bits(context, value):
    """The bits of a float64 as an int64."""

    def code(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), code


@intrinsic
def _float(context, bits):
    """The float64 with the bits of an int64."""

    def code(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), code


@_jit
def _exp1(x):
    """exp(x) for x ≤ 0 to the last digit but one; 0 below −708.  A library call is no vector."""
    v = x if x > -708.0 else -708.0
    shifted = v * _LOG2_E + _ROUND
    k = shifted - _ROUND
    r = (v - k * _LN2_HIGH) - k * _LN2_LOW
    p = _C[12] + r * _C[13]
    p = _C[11] + r * p
    p = _C[10] + r * p
    p = _C[9] + r * p
    p = _C[8] + r * p
    p = _C[7] + r * p
    p = _C[6] + r * p
    p = _C[5] + r * p
    p = _C[4] + r * p
    p = _C[3] + r * p
    p = _C[2] + r * p
    p = 1.0 + r * p
    p = 1.0 + r * p
    p *= _float((_bits(shifted) + 1023) << 52)
    return p if x > -708.0 else 0.0


@_jit
def _exp(x, out):
    a, b, c, d, e, f, g, h = x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]
    a, b, c, d = _exp1(a), _exp1(b), _exp1(c), _exp1(d)
    e, f, g, h = _exp1(e), _exp1(f), _exp1(g), _exp1(h)
    out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7] = a, b, c, d, e, f, g, h


@_jit
def _dot(A, B, out):
    """out = Σ_k A[k] B[k], (k, LANES) each; the sums stay in registers."""
    a = b = c = d = e = f = g = h = 0.0
    for k in range(A.shape[0]):
        a += A[k, 0] * B[k, 0]
        b += A[k, 1] * B[k, 1]
        c += A[k, 2] * B[k, 2]
        d += A[k, 3] * B[k, 3]
        e += A[k, 4] * B[k, 4]
        f += A[k, 5] * B[k, 5]
        g += A[k, 6] * B[k, 6]
        h += A[k, 7] * B[k, 7]
    out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7] = a, b, c, d, e, f, g, h


@_jit
def _weights(a, e, s, m, total):
    """Softmax s of the logits a (T, LANES), with e and m of the module's text; 1/Σ in `total`."""
    height, x = np.empty(LANES), np.empty(LANES)
    for l in range(LANES):
        height[l] = m[l] = -np.inf
        total[l] = 0.0
    top = np.zeros(LANES, np.int64)
    for t in range(len(a)):
        for l in range(LANES):
            v = a[t, l]
            ahead = v > height[l]
            least = height[l] if ahead else v
            m[l] = least if least > m[l] else m[l]
            top[l] = t if ahead else top[l]
            height[l] = v if ahead else height[l]
    for l in range(LANES):
        m[l] -= height[l]
        m[l] = m[l] if m[l] > -np.inf else 0.0  # a single token: nothing is behind it
    _exp(m, x)
    for t in range(len(a)):
        for l in range(LANES):
            v = a[t, l] - height[l] - m[l]
            s[t, l] = v if v < 0.0 else 0.0
        _exp(s[t], e[t])
        for l in range(LANES):
            s[t, l] = 1.0 if top[l] == t else e[t, l] * x[l]
            total[l] += s[t, l]
    for l in range(LANES):
        total[l] = 1.0 / total[l]
    for t in range(len(a)):
        for l in range(LANES):
            s[t, l] *= total[l]
    return top, height


@_jit
def _slope(kind, V, ridge, o, units, value, slope):
    """h(o) and ∇h(o) of the heads of `attsvm.heads`: 0 linear, 1 ReLU, 2 quadratic."""
    if kind == 1:
        for l in range(LANES):
            value[l] = 0.0
        for j in range(V.shape[1]):
            _dot(V[:, j], o, units[j])
            for l in range(LANES):
                on = units[j, l] > 0
                value[l] += units[j, l] if on else 0.0
                units[j, l] = 1.0 if on else 0.0
        for r in range(len(o)):
            _dot(V[r], units, slope[r])
        return
    _dot(V[:, 0], o, value)
    for r in range(len(o)):
        for l in range(LANES):
            value[l] -= ridge * o[r, l] * o[r, l]
            slope[r, l] = V[r, 0, l] - 2.0 * ridge * o[r, l]


@_jit
def _block(exact, kind, ridge, log_twice, epsilon, plain, steps, X, Z, Y, V, gamma, hidden, K, Q):
    """All steps of eight instances; K is W where Q has no columns.  Weights change in place."""
    n, T, d, _ = X.shape
    factored = Q.shape[1] > 0
    m = K.shape[1]
    h, f = np.empty((n, m, LANES)), np.empty((n, m, LANES))
    a, s, e = np.empty((T, LANES)), np.empty((n, T, LANES)), np.empty((T, LANES))
    q, b, o = np.empty((n, T, LANES)), np.empty((d, LANES)), np.empty((d, LANES))
    y, g, slope = np.empty((n, d, LANES)), np.empty((T, LANES)), np.empty((d, LANES))
    second, total, u, x = np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES)
    w, factor, units = np.empty((n, LANES)), np.empty((n, LANES)), np.empty((V.shape[1], LANES))
    c, drift = np.empty(LANES), np.empty(LANES)
    GK, GQ = np.empty(K.shape), np.empty(Q.shape)
    if not factored:
        h[:] = Z
    for k in range(len(steps)):
        for l in range(LANES):
            c[l] = -np.inf
        for i in range(n):
            if factored:
                for j in range(m):
                    _dot(Q[:, j], Z[i], h[i, j])
            for r in range(d):
                _dot(K[r], h[i], b[r])
            for t in range(T):
                _dot(X[i, t], b, a[t])
            if len(hidden):
                for t in range(T):
                    for l in range(LANES):
                        a[t, l] += hidden[i, t, l]
            top, height = _weights(a, e, s[i], second, total)
            if exact and kind == 0:
                _dot(s[i], gamma[i], u)
                g[:] = gamma[i]
            else:
                for r in range(d):
                    _dot(s[i], X[i, :, r], o[r])
                _slope(kind, V, ridge, o, units, u, slope)
                for l in range(LANES):
                    u[l] *= Y[i, l]
                    x[l] = -abs(u[l])
                _exp(x, x)
                for l in range(LANES):
                    # −σ(−u)/n arrives at the output, in the authors' order of operations
                    tail = (x[l] if u[l] > 0 else 1.0) / (1.0 + x[l]) / -n
                    x[l] = Y[i, l] if exact else Y[i, l] * tail
                for r in range(d):
                    for l in range(LANES):
                        slope[r, l] *= x[l]
                for t in range(T):
                    _dot(X[i, t], slope, g[t])
            if not exact:
                _dot(g, s[i], x)
                for t in range(T):
                    for l in range(LANES):
                        q[i, t, l] = (g[t, l] - x[l]) * s[i, t, l]
                continue
            for l in range(LANES):
                x[l] = -abs(u[l])
                drift[l] = g[top[l], l]
            again = False
            for l in range(LANES):
                # Tokens that tie with the top one do not set the scale.
                largest = -np.inf
                for t in range(T):
                    v = a[t, l] - height[l]
                    largest = v if g[t, l] != drift[l] and v > largest else largest
                again |= largest != second[l] and largest > -np.inf
                w[i, l] = largest - (u[l] if u[l] > 0.0 else 0.0)
                second[l] = largest if largest > -np.inf else 0.0
            if again:
                for t in range(T):
                    for l in range(LANES):
                        v = a[t, l] - height[l] - second[l]
                        e[t, l] = v if v < 0.0 else 0.0
                    _exp(e[t], e[t])
            _exp(x, x)
            for l in range(LANES):
                factor[i, l] = total[l] / (1.0 + x[l])
                c[l] = w[i, l] if w[i, l] > c[l] else c[l]
            for t in range(T):
                for l in range(LANES):
                    q[i, t, l] = e[t, l] * (g[t, l] - drift[l])
        for l in range(LANES):
            c[l] = c[l] if c[l] > -np.inf else 0.0
        for i in range(n):
            if exact:
                for l in range(LANES):
                    x[l] = w[i, l] - c[l]
                    drift[l] = 0.0
                _exp(x, x)
                for t in range(T):
                    for l in range(LANES):
                        q[i, t, l] *= x[l] * factor[i, l]
                        drift[l] += q[i, t, l]
                for t in range(T):
                    for l in range(LANES):
                        q[i, t, l] = s[i, t, l] * drift[l] - q[i, t, l]
            for r in range(d):
                _dot(q[i], X[i, :, r], y[i, r])
            if factored:
                for j in range(m):
                    _dot(K[:, j], y[i], f[i, j])
        for l in range(LANES):
            c[l] = c[l] - math.log(n) if exact else 0.0
        for r in range(d):
            for j in range(m):
                _dot(y[:, r], h[:, j], GK[r, j])
                if factored:
                    _dot(Z[:, r], f[:, j], GQ[r, j])
        if log_twice > -np.inf:
            for l in range(LANES):
                common = c[l] if c[l] > log_twice else log_twice
                x[l], drift[l] = c[l] - common, log_twice - common
                c[l] = common
            _exp(x, x)
            _exp(drift, drift)
            _ridge(x, drift, K, GK)
            _ridge(x, drift, Q, GQ)
        _step(steps[k], plain, epsilon, c, K, GK)
        if factored:
            _step(steps[k], plain, epsilon, c, Q, GQ)


@_jit
def _ridge(own, penalty, K, G):
    for r in range(K.shape[0]):
        for j in range(K.shape[1]):
            for l in range(LANES):
                G[r, j, l] = own[l] * G[r, j, l] + penalty[l] * K[r, j, l]


@_jit
def _step(size, plain, epsilon, c, K, G):
    """K ← K − η e^c G or K − η G/(‖G‖ + ε), as `_rules` has them."""
    x, y = np.zeros(LANES), np.zeros(LANES)
    for r in range(K.shape[0]):
        _dot(G[r], G[r], y)
        for l in range(LANES):
            x[l] += y[l]
    for l in range(LANES):
        if plain:
            x[l] = size * math.exp(c[l])
            continue
        norm = math.sqrt(x[l])
        if norm < 1e-140 and epsilon == 0.0:
            # Squares below 1e-308 vanish: bring such gradients to size one first.
            largest = np.abs(G[:, :, l]).max()
            if largest > 0.0:
                G[:, :, l] /= largest
                norm = math.sqrt((G[:, :, l] ** 2).sum())
        x[l] = size / (norm + epsilon) if norm + epsilon > 0.0 else 0.0
    for r in range(K.shape[0]):
        for j in range(K.shape[1]):
            for l in range(LANES):
                K[r, j, l] -= x[l] * G[r, j, l]


@_jit
def advance(exact, kind, ridge, log_twice, epsilon, plain, steps, X, Z, Y, V, gamma, hidden, K, Q):
    """Take all steps, (blocks, …, LANES) arrays; K and Q change in place.

    Parameters
    ----------
    exact
        Which arithmetic.
    kind, ridge, V
        The head: 0 linear (v as (d, 1)), 1 ReLU (V (d, units)), 2 quadratic with λ = ridge.
    log_twice
        log 2λ of the penalty; −∞: none.
    epsilon, plain
        Normalised steps with ε, or plain ones.
    steps
        η_k for each step to take.
    X, Z, Y, gamma
        Tokens (n, T, d), queries, labels, scores (for the linear head in exact arithmetic).
    hidden
        (n, T), −∞ at absent tokens, 0 elsewhere; no rows (0, T): all are there.
    K, Q
        (d, m), or W and Q (d, 0).
    """
    for b in range(len(X)):
        _block(
            exact, kind, ridge, log_twice, epsilon, plain, steps,
            X[b], Z[b], Y[b], V[b], gamma[b], hidden[b], K[b], Q[b],
        )  # fmt: skip


def lanes(array):
    """(B, …) → (blocks, …, LANES); the last block is filled up with copies of the last."""
    rows = np.minimum(np.arange(-(-len(array) // LANES) * LANES), len(array) - 1)
    split = array[rows].reshape(len(rows) // LANES, LANES, *array.shape[1:])
    return np.ascontiguousarray(np.moveaxis(split, 1, -1))


def unlanes(array, count):
    """(blocks, …, LANES) → (B, …), the inverse of `lanes`."""
    joined = np.moveaxis(array, -1, 1)
    return joined.reshape(len(joined) * LANES, *joined.shape[2:])[:count]
