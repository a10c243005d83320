// Normalised gradient descent on the attention weights, in arithmetic that does not saturate.  Pure, node can load it.
//
// The loss is (1/2) Σ_i log(1 + exp(−u_i)) with u_i = Σ_t s_it γ_it and s_i the softmax of the logits x_it'W z_i.
"use strict";
(() => {
  const explorer = (globalThis.attsvmExplorer ??= {});

  const times = (A, [x, y]) => [A[0][0] * x + A[0][1] * y, A[1][0] * x + A[1][1] * y];
  const transposed = ([[a, b], [c, d]]) => [[a, c], [b, d]];
  const product = (A, B) => A.map((row) => [0, 1].map((k) => row[0] * B[0][k] + row[1] * B[1][k]));
  const size = ([[a, b], [c, d]]) => Math.hypot(a, b, c, d);
  const correlation = (A, B) => {
    const inner = A[0][0] * B[0][0] + A[0][1] * B[0][1] + A[1][0] * B[1][0] + A[1][1] * B[1][1];
    return inner / (size(A) * size(B));
  };

  const logits = (tokens, queries, W) => tokens.map((sequence, i) => {
    const [x, y] = times(W, queries[i]);
    return sequence.map((token) => token[0] * x + token[1] * y);
  });

  const attention = (tokens, queries, W) => logits(tokens, queries, W).map((row) => {
    const top = Math.max(...row);
    const weights = row.map((a) => Math.exp(a - top));
    const total = weights.reduce((sum, w) => sum + w, 0);
    return weights.map((w) => w / total);
  });

  // ∂L/∂logits up to one positive factor.  With δ the score above that of the token on top, the derivative is
  // |ℓ'| s_t (Σ s δ − δ_t): no large terms cancel, since δ is zero on top.  log|ℓ'| + log s is added up as a logarithm
  // and the largest taken off before the one exponential, so nothing vanishes however small the weights are.
  const logitGradient = (scores, rows) => {
    const parts = rows.map((row, i) => {
      const top = row.indexOf(Math.max(...row));
      const relative = row.map((a) => a - row[top]);
      const weights = relative.map(Math.exp);
      const total = weights.reduce((sum, w) => sum + w, 0);
      const s = weights.map((w) => w / total);
      const margin = s.reduce((sum, w, t) => sum + w * scores[i][t], 0);
      // log(1 + e^u) without overflow; minus it is log|ℓ'(u)|.
      const slope = Math.log1p(Math.exp(-Math.abs(margin))) + Math.max(margin, 0);
      const delta = scores[i].map((score) => score - scores[i][top]);
      // The token on top, and exact ties with it, must not set the common factor.
      const logs = relative.map((a, t) => (delta[t] === 0 ? -Infinity : a - Math.log(total) - slope));
      return { s, delta, logs };
    });
    let common = Math.max(...parts.flatMap((part) => part.logs));
    if (common === -Infinity) common = 0; // all scores equal: the gradient is zero
    return parts.map(({ s, delta, logs }) => {
      const q = logs.map((log, t) => Math.exp(log - common) * delta[t]);
      const drift = q.reduce((sum, x) => sum + x, 0);
      return q.map((x, t) => s[t] * drift - x);
    });
  };

  // Subtract η g/‖g‖; a gradient that is exactly zero moves nothing.
  const stepped = (A, gradient, step) => {
    const norm = size(gradient);
    if (norm === 0) return A;
    return A.map((row, k) => row.map((value, l) => value - step * (gradient[k][l] / norm)));
  };

  /** A run that can be continued.
   *  problem: { tokens, queries, scores }; start: { W } or { K, Q }, W = K Q'; step: length η of a step.
   *  W(k) is `weights[k]`; `advance(k)` computes up to there. */
  class Run {
    constructor({ tokens, queries, scores }, start, step = 0.1) {
      Object.assign(this, { tokens, queries, scores, step, ...start });
      this.weights = [this.matrix()];
    }

    matrix() {
      return this.K ? product(this.K, transposed(this.Q)) : this.W;
    }

    advance(k) {
      while (this.weights.length <= k) {
        const W = this.weights[this.weights.length - 1];
        const p = logitGradient(this.scores, logits(this.tokens, this.queries, W));
        // ∇_W = Σ_i (X_i'p_i) z_i', and the chain rule to K and Q.
        const gradient = [[0, 0], [0, 0]];
        this.tokens.forEach((sequence, i) => sequence.forEach((token, t) => {
          for (const a of [0, 1]) for (const b of [0, 1]) gradient[a][b] += p[i][t] * token[a] * this.queries[i][b];
        }));
        if (this.K) {
          const [K, Q] = [this.K, this.Q];
          this.K = stepped(K, product(gradient, Q), this.step);
          this.Q = stepped(Q, product(transposed(gradient), K), this.step);
        } else {
          this.W = stepped(W, gradient, this.step);
        }
        this.weights.push(this.matrix());
      }
      return this;
    }
  }

  // K and Q with K Q' = W and as small as they can be: both get the root of the singular values.
  const factors = (W) => {
    const [[a, b], [c, d]] = W;
    const [sum, difference] = [Math.atan2(c - b, a + d), Math.atan2(b + c, a - d)];
    const [p, r] = [Math.hypot(a + d, c - b) / 2, Math.hypot(a - d, b + c) / 2];
    const [left, right] = [(difference + sum) / 2, (difference - sum) / 2];
    // W = R(left) diag(p + r, p − r) R(right)'; the second value may be negative, its sign goes to Q.
    const [one, two] = [Math.sqrt(p + r), Math.sqrt(Math.abs(p - r))];
    const sign = p < r ? -1 : 1;
    const turn = (angle, x, y) => [[Math.cos(angle) * x, -Math.sin(angle) * y], [Math.sin(angle) * x, Math.cos(angle) * y]];
    return { K: turn(left, one, two), Q: turn(right, one, sign * two) };
  };

  Object.assign(explorer, { Run, attention, correlation, factors, times });
})();
