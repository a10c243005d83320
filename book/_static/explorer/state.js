// What a visitor can set, the presets, and the way into the address and back.  Pure, node can load it.
//
// Everything on the page follows from this state: the solutions, the run up to step k, the drawing.
"use strict";
(() => {
  const explorer = (globalThis.attsvmExplorer ??= {});
  const REACH = 2.4; // tokens and queries stay within ±REACH
  const STEPS = 2000; // as in the published figure
  const FARTHEST = 5; // longest start W(0) along the SVM solution

  // The published instances, as their generators draw them (single precision, hence the digits).
  const A1 = [
    [[1, 0.5], [-0.1897246241569519, -0.7983540296554565], [-0.7976964116096497, 0.3056498169898987],
      [-0.6198047995567322, -0.01682163029909134], [-1.1724226474761963, 0.24682678282260895]],
    [[1, -0.5], [-0.7574430108070374, 0.10261718928813934], [-0.830785870552063, 0.67637699842453],
      [-0.8131822943687439, 0.006708239670842886], [-0.613163411617279, -0.05462175980210304]],
  ];
  const A2 = [
    [[-0.9814968109130859, 0.18639519810676575], [-1.135571837425232, -0.0498390719294548],
      [-1.4568305015563965, 0.11450517922639847]],
    [[0.6917173862457275, -0.16891583800315857], [0.732312798500061, -0.017475053668022156],
      [0.9413471221923828, -0.2896907925605774]],
  ];
  // `chosen` null: the SVM is that of the tokens with the highest score.
  const PRESETS = {
    a1: { name: "Five tokens, the first figure of the paper", tokens: A1,
      queries: [[-0.5391289591789246, -0.8422232270240784], [0.9525519013404846, 0.30437642335891724]],
      v: [0.9771237969398499, 0.2126714289188385], by: "v", chosen: null, weights: "W", start: 0 },
    a2: { name: "Three tokens, the figure with both parameterisations", tokens: A2,
      queries: [[0.8450113534927368, 0.534748375415802], [-0.6362639665603638, -0.771471381187439]],
      v: [0.9273199439048767, 0.37426966428756714], by: "v", chosen: null, weights: "W", start: 0 },
    trap: { name: "A trap: locally optimal tokens",
      tokens: [[[-0.35, 0.01], [-0.57, 0.59], [1.03, -0.54], [-0.5, -1.02]],
        [[0.89, 0.42], [0.52, -1.01], [-0.31, -1.13], [-0.91, 0.87]]],
      queries: [[-1, -0.04], [0.72, 0.69]], v: [0.33, 0.94], by: "v", chosen: [2, 3], weights: "W", start: 1 },
    none: { name: "Nothing separates: a token inside the others",
      tokens: [[[0.15, 0.1], [1.1, 0.7], [0.2, -1.1], [-1, 0.75]], [[-0.9, -0.6], [0.5, 0.2], [0.9, -0.5]]],
      queries: [[0.6, 0.8], [-0.8, 0.5]], v: [0.5, 0.8], by: "pick", chosen: [0, 0], weights: "W", start: 0 },
  };
  // K(0) of the published figure is 0.1 × normal and Q(0) = 0; these are the draws of the chapter that redraws it.
  const K0 = [[0.0345584192064786, 0.08216181435011584], [0.03304370761833871, -0.1303157231604361]];

  const copy = (value) => JSON.parse(JSON.stringify(value));
  const preset = (key) => {
    const { name, ...rest } = PRESETS[key];
    return { preset: key, ...copy(rest), k: 0 };
  };

  const scores = ({ tokens, v, by, chosen }) => tokens.map((sequence, i) => sequence.map((x, t) =>
    (by === "v" ? v[0] * x[0] + v[1] * x[1] : Number(t === chosen[i]))));
  const best = (row) => row.indexOf(Math.max(...row));
  /** The tokens that the SVM is to select. */
  const selected = (state) => state.chosen ?? scores(state).map(best);

  const bounded = (x) => Math.min(REACH, Math.max(-REACH, Math.round(x * 1e4) / 1e4));
  /** The state after a change: no preset any more, coordinates with four decimals, short enough for an address. */
  const edited = (state, change) => {
    const next = copy(state);
    change(next);
    next.preset = null;
    next.tokens = next.tokens.map((sequence) => sequence.map((x) => x.map(bounded)));
    next.queries = next.queries.map((z) => z.map(bounded));
    next.v = next.v.map(bounded);
    return next;
  };

  // The address: fields as in a query, a preset by its name, points as "x,y" joined by ";", sequences by "/".
  const points = (list) => list.map((x) => x.join(",")).join(";");
  const write = (state) => {
    const fields = { preset: state.preset };
    if (state.preset) {
      const usual = PRESETS[state.preset];
      for (const key of ["weights", "start"]) if (state[key] !== usual[key]) fields[key] = state[key];
    } else {
      Object.assign(fields, { x: state.tokens.map(points).join("/"), z: points(state.queries), v: state.v.join(","),
        by: state.by, tokens: state.chosen?.map((t) => t + 1).join(","), weights: state.weights, start: state.start });
    }
    fields.k = state.k || null;
    return Object.entries(fields).filter(([, value]) => value !== null && value !== undefined)
      .map(([key, value]) => `${key}=${value}`).join("&");
  };

  class AddressError extends Error {}
  const refuse = (what) => { throw new AddressError(what); };
  const number = (text, name, low, high) => {
    const value = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text) ? Number(text) : NaN;
    return value >= low && value <= high ? value : refuse(`${name} should be a number from ${low} to ${high}`);
  };
  const point = (text, name) => {
    const parts = text.split(",");
    return parts.length === 2 ? parts.map((part) => number(part, name, -REACH, REACH))
      : refuse(`${name} should be two numbers`);
  };
  const choice = (text, name, allowed) => (allowed.includes(text) ? text
    : refuse(`${name} should be one of ${allowed.join(", ")}`));

  /** The state that an address holds.  Raises AddressError, saying what is wrong, for one that holds none. */
  const read = (hash) => {
    let text;
    try {
      text = decodeURIComponent(hash.replace(/^#/, ""));
    } catch {
      refuse("a sign is not encoded properly");
    }
    const fields = Object.fromEntries(text.split("&").map((part) => {
      const [key, ...value] = part.split("=");
      return [key, value.join("=")];
    }));
    const allowed = ["preset", "x", "z", "v", "by", "tokens", "weights", "start", "k"];
    for (const key of Object.keys(fields)) choice(key, "a field", allowed);
    let state;
    if (fields.preset !== undefined) {
      state = preset(choice(fields.preset, "preset", Object.keys(PRESETS)));
      for (const key of ["x", "z", "v", "by", "tokens"]) if (key in fields) refuse(`a preset has its own ${key}`);
    } else {
      const sequences = (fields.x ?? "").split("/");
      if (sequences.length !== 2) refuse("x should be two sequences");
      const tokens = sequences.map((sequence) => sequence.split(";").map((one) => point(one, "a token")));
      if (tokens.some(({ length }) => length < 3 || length > 5)) refuse("a sequence should have three to five tokens");
      const queries = (fields.z ?? "").split(";").map((one) => point(one, "a query"));
      if (queries.length !== 2) refuse("z should be two queries");
      const by = choice(fields.by ?? "v", "by", ["v", "pick"]);
      const chosen = fields.tokens?.split(",").map((one, i) =>
        number(one, "a chosen token", 1, tokens[i]?.length ?? 0) - 1) ?? null;
      if (chosen && (chosen.length !== 2 || !chosen.every(Number.isInteger))) refuse("tokens should be two whole numbers");
      if (!chosen && by === "pick") refuse("tokens are missing");
      state = { preset: null, tokens, queries, v: point(fields.v ?? "", "v"), by, chosen, weights: "W", start: 0, k: 0 };
    }
    if (fields.weights !== undefined) state.weights = choice(fields.weights, "weights", ["W", "KQ"]);
    if (fields.start !== undefined) state.start = number(fields.start, "start", 0, FARTHEST);
    if (fields.k !== undefined) state.k = Math.round(number(fields.k, "k", 0, STEPS));
    return state;
  };

  /** All that follows from a state, but for the run: both solutions, the scores, how good the selected tokens are. */
  const solved = (state) => {
    const chosen = selected(state);
    const gamma = scores(state);
    const [fro, nuc] = ["fro", "nuc"].map((norm) => explorer.solve(state.tokens, state.queries, chosen, norm));
    const target = state.weights === "W" ? fro : nuc;
    const standing = chosen.map((alpha, i) => {
      if (gamma[i].every((g) => g <= gamma[i][alpha])) return "optimal";
      if (target.status !== "solved") return "not optimal";
      const rivals = gamma[i].filter((_, t) => target.support[i][t]);
      return rivals.every((g) => g < gamma[i][alpha]) ? "locally optimal" : "not locally optimal";
    });
    return { chosen, gamma, fro, nuc, target, standing };
  };

  /** The run of a state from its start, at step 0. */
  const run = (state, { gamma, target }) => {
    const problem = { tokens: state.tokens, queries: state.queries, scores: gamma };
    const along = state.start > 0 && target.status === "solved";
    const W = along
      ? target.W.map((row) => row.map((w) => (w * state.start) / Math.hypot(...target.W.flat())))
      : [[0, 0], [0, 0]];
    if (state.weights === "W") return new explorer.Run(problem, { W });
    return new explorer.Run(problem, along ? explorer.factors(W) : { K: copy(K0), Q: [[0, 0], [0, 0]] });
  };

  Object.assign(explorer, { PRESETS, REACH, STEPS, FARTHEST, AddressError, preset, edited, read, write, solved, run });
})();
