// The two support vector machines of the page, solved exactly.  Pure functions, no page needed: node can load this file.
//
//   minimise ‖W‖  subject to  (x_iα − x_it)'W z_i ≥ 1  for every token t that is not the chosen α of sequence i,
//
// in the Frobenius and in the nuclear norm, for 2 × 2 matrices and a handful of constraints.
"use strict";
(() => {
  const explorer = (globalThis.attsvmExplorer ??= {});
  const dot = (a, b) => a.reduce((sum, x, k) => sum + x * b[k], 0);
  const length = (a) => Math.hypot(...a);

  // A 2 × 2 matrix is a rotation part p plus a reflection part r, each a vector of the plane.  This change of basis is
  // orthonormal, and it makes both norms simple:  ‖W‖_F² = |p|² + |r|²,  ‖W‖_* = √2 max(|p|, |r|),
  // ‖W‖_op = (|p| + |r|)/√2.
  const HALF = Math.SQRT1_2;
  const split = ([[a, b], [c, d]]) => [HALF * (a + d), HALF * (c - b), HALF * (a - d), HALF * (b + c)];
  const join = ([p, q, r, s]) => [[HALF * (p + r), HALF * (s - q)], [HALF * (q + s), HALF * (p - r)]];
  const rotation = (x) => Math.hypot(x[0], x[1]);
  const reflection = (x) => Math.hypot(x[2], x[3]);
  const NORMS = {
    fro: { of: length, dual: length },
    nuc: {
      of: (x) => Math.SQRT2 * Math.max(rotation(x), reflection(x)),
      dual: (x) => HALF * (rotation(x) + reflection(x)),
    },
  };

  // One row <row, x> ≥ b for each constraint, of length one; lengths move to the right-hand side, so that long tokens
  // do not drown short ones.
  const constraints = (tokens, queries, chosen) => tokens.flatMap((sequence, i) => sequence.flatMap((token, t) => {
    if (t === chosen[i]) return [];
    const difference = token.map((x, k) => sequence[chosen[i]][k] - x);
    const outer = split(difference.map((x) => queries[i].map((z) => x * z)));
    const size = length(outer);
    return [{ i, t, size, row: outer.map((x) => (size > 0 ? x / size : 0)), b: size > 0 ? 1 / size : Infinity }];
  }));

  // All sets of `least` to `most` of the numbers 0 … m − 1, small sets first; made once, asked for many times.
  const known = {};
  const subsets = (m, least, most) => {
    const found = (known[[m, least, most]] ??= []);
    if (found.length) return found;
    const extend = (set, from, size) => {
      if (set.length === size) found.push(set);
      else for (let j = from; j < m; j++) extend([...set, j], j + 1, size);
    };
    for (let size = least; size <= Math.min(m, most); size++) extend([], 0, size);
    return found;
  };

  // Gaussian elimination with row exchanges; null where the matrix is singular up to rounding.
  const linearSolve = (matrix, right) => {
    const n = right.length;
    const A = matrix.map((row, k) => [...row, right[k]]);
    for (let c = 0; c < n; c++) {
      let best = c;
      for (let k = c + 1; k < n; k++) if (Math.abs(A[k][c]) > Math.abs(A[best][c])) best = k;
      const largest = Math.max(...matrix.map((row) => Math.abs(row[c])));
      if (!(Math.abs(A[best][c]) > 1e-13 * largest)) return null;
      [A[c], A[best]] = [A[best], A[c]];
      for (let k = c + 1; k < n; k++) {
        const factor = A[k][c] / A[c][c];
        for (let l = c; l <= n; l++) A[k][l] -= factor * A[c][l];
      }
    }
    const x = new Array(n);
    for (let k = n - 1; k >= 0; k--) {
      let sum = A[k][n];
      for (let l = k + 1; l < n; l++) sum -= A[k][l] * x[l];
      x[k] = sum / A[k][k];
    }
    return x;
  };

  const combine = (rows, set, multipliers) =>
    [0, 1, 2, 3].map((k) => set.reduce((sum, j, l) => sum + multipliers[l] * rows[j][k], 0));

  // Smallest <row, x>/b over all constraints: 1 for a solution, and dividing x by it makes one of any positive value.
  const margin = (rows, b, x) => Math.min(...rows.map((row, j) => dot(row, x) / b[j]));

  // A point with multipliers λ_j on a set, if it satisfies the optimality conditions up to rounding: λ ≥ 0, no
  // constraint violated.
  const admissible = (rows, b, set, x, multipliers) => {
    const largest = Math.max(...multipliers);
    if (!(largest > 0) || Math.min(...multipliers) < -1e-11 * largest) return null;
    const least = margin(rows, b, x);
    return least > 1 - 1e-9 ? { x, set, multipliers, least } : null;
  };

  // min θ|p|² + (1 − θ)|r|², by trying which constraints are active.  At most four of at most eight are, so there are at
  // most 162 sets: no iteration that could cycle or stall, and a set that is linearly dependent is never needed.
  const weighted = (rows, b, theta, rest, hint = []) => {
    const scale = [theta, theta, rest, rest].map((w) => 1 / Math.sqrt(w));
    const scaled = rows.map((row) => row.map((x, k) => x * scale[k]));
    const gram = scaled.map((row) => scaled.map((other) => dot(row, other)));
    let best = null;
    for (const set of [hint, ...subsets(rows.length, 1, 4)]) {
      if (set.length === 0) continue;
      const block = set.map((j) => set.map((l) => gram[j][l]));
      let multipliers = linearSolve(block, set.map((j) => b[j]));
      if (!multipliers || Math.min(...multipliers) < -1e-9 * Math.max(...multipliers)) continue;
      let x = combine(scaled, set, multipliers);
      // The residual is taken from x, not from the Gram matrix, whose entries have lost digits where rows are nearly
      // parallel.
      for (let again = 0; again < 2; again++) {
        const correction = linearSolve(block, set.map((j) => b[j] - dot(scaled[j], x)));
        multipliers = multipliers.map((m, l) => m + correction[l]);
        x = combine(scaled, set, correction).map((c, k) => x[k] + c);
      }
      const found = admissible(rows, b, set, x.map((value, k) => value * scale[k]), multipliers);
      if (found && (!best || found.least > best.least)) best = found;
      if (best && best.least > 1 - 1e-14) break;
    }
    return best;
  };

  // min |p| with r free (part 0), or min |r| with p free (part 2): the ends of the family above.
  const oneSided = (rows, b, part) => {
    const own = rows.map((row) => row.slice(part, part + 2));
    const other = rows.map((row) => row.slice(2 - part, 4 - part));
    let best = null;
    for (const set of subsets(rows.length, 3, 4)) {
      const matrix = set.map((j) => [...set.map((l) => dot(own[j], own[l])), ...other[j]]);
      for (const k of [0, 1]) matrix.push([...set.map((j) => other[j][k]), 0, 0]);
      const solution = linearSolve(matrix, [...set.map((j) => b[j]), 0, 0]);
      if (!solution) continue;
      const multipliers = solution.slice(0, set.length);
      const part1 = combine(rows, set, multipliers).slice(part, part + 2);
      const part2 = solution.slice(set.length);
      const found = admissible(rows, b, set, part === 0 ? [...part1, ...part2] : [...part2, ...part1], multipliers);
      if (found && (!best || found.least > best.least)) best = found;
    }
    return best;
  };

  // max(|p|, |r|)² = max over θ in [0, 1] of θ|p|² + (1 − θ)|r|².  Exchanging min and max leaves a concave function of θ,
  // whose slope |p|² − |r|² falls: a root in the interior means |p| = |r|, a matrix of rank one; else an end is best.
  const nuclearCandidates = (rows, b) => {
    // θ = 1/(1 + e^−t): near both ends t resolves what θ cannot.
    let latest;
    const at = (t) => (latest = weighted(rows, b, 1 / (1 + Math.exp(-t)), 1 / (1 + Math.exp(t)), latest?.set));
    const slope = (found) => rotation(found.x) / reflection(found.x) - 1;
    const LIMIT = 16;
    let [low, high] = [-LIMIT, LIMIT];
    let [first, last] = [at(low), at(high)];
    if (!first || !last) return [];
    const found = [first, last];
    const end = slope(last) >= 0 ? 0 : slope(first) <= 0 ? 2 : null;
    if (end !== null) return [...found, oneSided(rows, b, end)].filter(Boolean);
    // Illinois: false position that halves a value which stays too long; brackets like bisection, faster.
    let [below, above] = [Math.min(slope(first), 10), Math.max(slope(last), -10)];
    for (let step = 0; step < 60 && high - low > 1e-14 * Math.max(1, Math.abs(low)); step++) {
      // Every third step bisects, where kinks of the function would mislead the secant.
      const t = step % 3 === 2 ? (low + high) / 2 : (low * above - high * below) / (above - below);
      const middle = at(t);
      if (!middle) break;
      found.push(middle);
      const value = slope(middle);
      if (Math.abs(value) < 1e-15) break;
      if (value > 0) [low, below, above] = [t, value, step % 3 === 2 ? above : above / 2];
      else [high, above, below] = [t, value, step % 3 === 2 ? below : below / 2];
    }
    return found;
  };

  // How far a pair (x, λ) is from optimal, trusting nobody: x scaled to margin one against Σ b λ/‖Σ λ row‖ in the dual
  // norm.
  const judged = (rows, b, norm, { x, set, multipliers }) => {
    const positive = multipliers.map((m) => Math.max(m, 0));
    const least = margin(rows, b, x);
    const scaled = x.map((value) => value / least);
    const objective = NORMS[norm].of(scaled);
    const size = NORMS[norm].dual(combine(rows, set, positive));
    const bound = set.reduce((sum, j, l) => sum + b[j] * positive[l], 0) / size;
    return { x: scaled, set, objective, bound, gap: (objective - bound) / objective,
      multipliers: positive.map((m) => m * (norm === "fro" ? objective / size : 1 / size)) };
  };

  // Multipliers λ ≥ 0 with Σ λ_j row_j = 0: then no W satisfies all constraints.  In the plane three rows are always
  // enough: the queries are independent and one sequence alone contradicts itself, or all rows live in one plane.
  const contradiction = (rows) => {
    const zero = rows.findIndex((row) => length(row) === 0);
    if (zero >= 0) return { set: [zero], multipliers: [1] };
    let best = null;
    for (const set of subsets(rows.length, 2, 3)) {
      const [j, ...others] = set;
      const block = others.map((l) => others.map((m) => dot(rows[l], rows[m])));
      const weights = linearSolve(block, others.map((l) => -dot(rows[l], rows[j])));
      if (!weights || Math.min(...weights) <= 0) continue;
      const multipliers = [1, ...weights];
      const sum = multipliers.reduce((a, m) => a + m, 0);
      const residual = length(combine(rows, set, multipliers)) / sum;
      if (residual < 1e-12 && (!best || residual < 0.1 * best.residual)) {
        best = { set, residual, multipliers: multipliers.map((m) => m / sum) };
      }
    }
    return best;
  };

  const TOLERANCE = { fro: 1e-9, nuc: 1e-6 };

  /** Solve the SVM of the chosen tokens.
   *  tokens: two lists of [x, y]; queries: two [x, y]; chosen: the index α of each sequence; norm: "fro" or "nuc".
   *  Answers { status: "solved" | "infeasible" | "inaccurate", W, objective, bound, gap, dual, margins, support,
   *  certificate }; dual, margins, support and certificate are lists by sequence and token (0, null, false at α). */
  const solve = (tokens, queries, chosen, norm) => {
    const all = constraints(tokens, queries, chosen);
    const rows = all.map((one) => one.row);
    const b = all.map((one) => one.b);
    const byToken = (start) => tokens.map((sequence) => sequence.map(() => start));
    const spread = (set, multipliers) => {
      const result = byToken(0);
      // Back to the units of the constraint as it was given.
      set.forEach((j, l) => { result[all[j].i][all[j].t] = multipliers[l] / (all[j].size || 1); });
      return result;
    };
    const failed = (status, proof) => ({ status, norm, W: null, objective: Infinity, gap: NaN, dual: byToken(0),
      margins: byToken(null), support: byToken(false), certificate: proof && spread(proof.set, proof.multipliers) });
    if (all.some((one) => one.size === 0)) return failed("infeasible", contradiction(rows));
    let candidates = [weighted(rows, b, 0.5, 0.5)].filter(Boolean);
    if (candidates.length && norm === "nuc") candidates = nuclearCandidates(rows, b);
    const best = candidates.map((one) => judged(rows, b, norm, one))
      .reduce((a, c) => (a && a.gap <= c.gap ? a : c), null);
    if (!best || !(best.gap < TOLERANCE[norm])) {
      const proof = contradiction(rows);
      return failed(proof ? "infeasible" : "inaccurate", proof);
    }
    const W = join(best.x);
    const margins = byToken(null);
    const support = byToken(false);
    all.forEach(({ i, t, row, b: right }) => {
      margins[i][t] = dot(row, best.x) / right;
      support[i][t] = margins[i][t] < 1 + 1e-6;
    });
    return { status: "solved", norm, W, objective: best.objective, bound: best.bound, gap: best.gap,
      dual: spread(best.set, best.multipliers), margins, support, certificate: null };
  };

  explorer.solve = solve;
})();
