// Draws a state and what follows from it.  Knows no events: controls.js listens.
"use strict";
(() => {
  const explorer = (globalThis.attsvmExplorer ??= {});
  const SVG = "http://www.w3.org/2000/svg";
  const SIDE = 400; // units of a drawing, each way

  /** An element: name, attributes, children (elements or text). */
  const make = (name, attributes = {}, ...children) => {
    const svg = /^(svg|g|path|line|circle|rect|polygon|polyline|text|title)$/.test(name);
    const element = svg ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children);
    return element;
  };
  const signed = (x, digits = 2) => x.toFixed(digits).replace(/^-(0\.?0*)$/, "$1").replace("-", "−");
  // A share that is not quite 1 should not read 1.
  const share = (x) => (x > 0.99995 && x < 1 ? "> 0.9999" : signed(x, 4));

  const circle = (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`;
  const square = (x, y, r) => `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`;
  const diamond = (x, y, r) => `M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}z`;
  const star = (x, y, r) => `M${[...Array(10).keys()].map((k) => {
    const [angle, size] = [(Math.PI * k) / 5, k % 2 ? 0.45 * r : r];
    return `${x + size * Math.sin(angle)} ${y - size * Math.cos(angle)}`;
  }).join("L")}z`;
  // Sequences are told apart by shape as well as by colour.
  const SHAPES = [circle, square];

  /** A square window on the plane: middle and half its width, to units of the drawing. */
  const frame = ([mx, my], half) => {
    const scale = SIDE / (2 * half);
    return { half, scale, place: ([x, y]) => [SIDE / 2 + (x - mx) * scale, SIDE / 2 - (y - my) * scale],
      point: ([x, y]) => [mx + (x - SIDE / 2) / scale, my - (y - SIDE / 2) / scale] };
  };
  const niceStep = (span) => {
    const power = 10 ** Math.floor(Math.log10(span));
    return power * [1, 2, 5, 10].find((m) => m * power >= span);
  };
  const grid = (view, [mx, my]) => {
    const step = niceStep(view.half / 2.5);
    const lines = [];
    for (const axis of [0, 1]) {
      const middle = axis ? my : mx;
      for (let n = Math.ceil((middle - view.half) / step); n * step < middle + view.half; n++) {
        const [x, y] = view.place(axis ? [mx, n * step] : [n * step, my]);
        const at = axis ? { x1: 0, x2: SIDE, y1: y, y2: y } : { x1: x, x2: x, y1: 0, y2: SIDE };
        lines.push(make("line", { class: n ? "grid" : "grid axis", ...at }));
        const label = signed(n * step, step < 1 ? Math.ceil(-Math.log10(step) - 1e-9) : 0);
        if ((axis ? y : x) > 18 && (axis ? y : x) < SIDE - 18) {
          lines.push(axis ? make("text", { class: "tick", x: 4, y: y - 3 }, label)
            : make("text", { class: "tick", x: x + 3, y: SIDE - 5 }, label));
        }
      }
    }
    return lines;
  };
  const line = (from, to, name) => make("line", { class: name, x1: from[0], y1: from[1], x2: to[0], y2: to[1] });
  const head = ([x, y], [dx, dy], r, name) => {
    const size = Math.hypot(dx, dy) || 1;
    const [a, b] = [(r * dx) / size, (r * dy) / size];
    return make("path", { class: name, d: `M${x} ${y}L${x - 2 * a - b} ${y - 2 * b + a}L${x - 2 * a + b} ${y - 2 * b - a}z` });
  };

  // Beside a point, on the side where the drawing has room.
  const name = ([x, y], text) => make("text", { class: "name", x: x + (x > SIDE / 2 ? -8 : 8), y: Math.max(y - 8, 14),
    "text-anchor": x > SIDE / 2 ? "end" : "start" }, text);

  /** What a movable point is called: "x.0.2" a token, "z.1" a query, "v" the head. */
  const handles = (state) => [
    ...state.tokens.flatMap((sequence, i) => [...sequence.map((_, t) => `x.${i}.${t}`), `z.${i}`]),
    ...(state.by === "v" ? ["v"] : []),
  ];
  const position = (state, id) => {
    const [kind, i, t] = id.split(".");
    return kind === "x" ? state.tokens[i][t] : kind === "z" ? state.queries[i] : state.v;
  };
  const spoken = (state, solved, id) => {
    const [kind, i, t] = id.split(".");
    const at = `at ${position(state, id).map((x) => signed(x)).join(", ")}`;
    if (kind === "v") return `v, which scores the tokens, ${at}`;
    if (kind === "z") return `Query z${"₁₂"[i]} of sequence ${Number(i) + 1}, ${at}`;
    const marks = [solved.chosen[i] === Number(t) && "selected by the SVM", solved.target.support[i][t] && "support token",
      solved.target.certificate?.[i][t] > 0 && "part of the proof that nothing separates"].filter(Boolean);
    return [`Token ${Number(t) + 1} of sequence ${Number(i) + 1}, ${at}`, ...marks].join(", ");
  };

  /** Half the width of the window on the tokens: they fill it, and it stays still while something is dragged. */
  const reach = (state) => {
    const largest = Math.max(1, ...[...state.tokens.flat(), ...state.queries, state.v].flat().map(Math.abs));
    return [1.3, 1.6, 2, 2.7].find((half) => largest < 0.92 * half) ?? 2.7;
  };

  class View {
    constructor(root) {
      this.root = root;
      this.part = (name) => root.querySelector(`[data-part="${name}"]`);
      this.half = 1.6;
    }

    /** Map a place on the screen to the plane of the tokens. */
    pointAt(x, y) {
      const box = this.part("tokens").getBoundingClientRect();
      return frame([0, 0], this.half).point([((x - box.left) / box.width) * SIDE, ((y - box.top) / box.height) * SIDE]);
    }

    draw(state, solved, run, k) {
      const W = run.weights[k];
      this.tokens(state, solved, W);
      this.paths(state, solved, run, k);
      this.table(state, solved, explorer.attention(state.tokens, state.queries, W));
      this.curve(state, solved, run, k);
      this.words(state, solved, W, k);
    }

    tokens(state, solved, W) {
      const view = frame([0, 0], this.half);
      const origin = view.place([0, 0]);
      const far = 4 * this.half;
      const back = [...grid(view, [0, 0])];
      state.queries.forEach((z, i) => {
        const marks = make("g", { class: `sequence-${i + 1}` });
        back.push(marks);
        if (solved.target.status === "solved") {
          const u = explorer.times(solved.target.W, z);
          const size = Math.hypot(...u);
          const unit = u.map((x) => x / size);
          const best = state.tokens[i][solved.chosen[i]];
          // x'Wz is one margin larger at the selected token than where the next may lie.
          const edge = (shift) => {
            const foot = best.map((x, c) => x - (shift / size) * unit[c]);
            return [-far, far].map((l) => view.place([foot[0] - l * unit[1], foot[1] + l * unit[0]]));
          };
          const band = line(...edge(0.5), "band");
          band.setAttribute("stroke-width", view.scale / size);
          marks.append(band, line(...edge(0), "edge"), line(...edge(0.5), "separator"), line(...edge(1), "edge"),
            line(origin, view.place(unit.map((x) => far * x)), "ray"));
        }
        const certificate = solved.target.certificate?.[i];
        if (certificate?.some((m) => m > 0)) {
          const proof = state.tokens[i].filter((_, t) => certificate[t] > 0);
          if (proof.length > 2) marks.append(make("polygon", { class: "proof-hull", points: proof.map(view.place).join(" ") }));
          const best = view.place(state.tokens[i][solved.chosen[i]]);
          for (const x of proof) marks.append(line(best, view.place(x), "proof-line"));
        }
        marks.append(line(origin, view.place(z), "query-line"));
        const now = explorer.times(W, z);
        const size = Math.hypot(...now);
        if (size > 0) {
          const tip = view.place(now.map((x) => (0.9 * this.half * x) / size));
          marks.append(line(origin, tip, "direction"), head(tip, [tip[0] - origin[0], tip[1] - origin[1]], 6, "direction-head"),
            name(tip, `Wz${"₁₂"[i]}`));
        }
      });
      if (state.by === "v") back.push(line(origin, view.place(state.v), "head-line"));
      this.part("token-back").replaceChildren(...back);
      this.handles(state, solved, view);
    }

    // Handles are kept, not drawn anew, so that they keep the focus and a finger that holds them.
    handles(state, solved, view) {
      const group = this.part("token-handles");
      const ids = handles(state);
      if ([...group.children].map((one) => one.dataset.handle).join() !== ids.join()) {
        group.replaceChildren(...ids.map((id) => make("g", { "data-handle": id, tabindex: 0, role: "button",
          "aria-roledescription": "movable point", "aria-describedby": "explorer-keys" },
        make("circle", { class: "touch", r: 20 }), make("path", { class: "ring" }), make("path", { class: "mark" }),
        make("text", { class: "name" }))));
      }
      for (const one of group.children) {
        const id = one.dataset.handle;
        const [kind, i, t] = id.split(".");
        const [x, y] = view.place(position(state, id));
        const [touch, ring, mark, name] = one.children;
        touch.setAttribute("cx", x);
        touch.setAttribute("cy", y);
        const chosen = kind === "x" && solved.chosen[i] === Number(t);
        const support = kind === "x" && solved.target.support[i][t];
        const proof = kind === "x" && solved.target.certificate?.[i][t] > 0;
        ring.setAttribute("d", support ? circle(x, y, 9.5) : proof ? diamond(x, y, 13) : "M0 0");
        mark.setAttribute("d", kind === "x" ? (chosen ? star(x, y, 11) : SHAPES[i](x, y, i ? 4.5 : 5))
          : kind === "z" ? diamond(x, y, 6) : `M${x} ${y - 7}L${x + 6.500} ${y + 5}L${x - 6.500} ${y + 5}z`);
        name.setAttribute("x", x + (chosen ? 10 : 7));
        name.setAttribute("y", y - 7);
        name.textContent = kind === "x" ? Number(t) + 1 : kind === "z" ? `z${"₁₂"[i]}` : "v";
        one.setAttribute("class", `handle handle-${kind} ${kind === "v" ? "" : `sequence-${Number(i) + 1}`}`);
        one.setAttribute("aria-label", spoken(state, solved, id));
        if (kind === "x") one.setAttribute("aria-pressed", String(chosen));
      }
    }

    paths(state, solved, run, k) {
      const every = Math.max(1, Math.ceil(k / 400)); // more points than that are not seen
      const steps = [...Array(Math.floor(k / every) + 1).keys()].map((n) => n * every);
      if (steps[steps.length - 1] !== k) steps.push(k);
      const curves = state.queries.map((z) => steps.map((n) => explorer.times(run.weights[n], z)));
      const all = [[0, 0], ...curves.flat()];
      const [low, high] = [Math.min, Math.max].map((f) => [0, 1].map((c) => f(...all.map((x) => x[c]))));
      const half = Math.max(0.5, 0.62 * Math.max(high[0] - low[0], high[1] - low[1]));
      const middle = low.map((x, c) => (x + high[c]) / 2);
      const view = frame(middle, half);
      const origin = view.place([0, 0]);
      const parts = grid(view, middle);
      state.queries.forEach((z, i) => {
        const marks = make("g", { class: `sequence-${i + 1}` });
        for (const [name, solution] of [["fro", solved.fro], ["nuc", solved.nuc]]) {
          if (solution.status !== "solved") continue;
          const u = explorer.times(solution.W, z);
          const end = view.place(u.map((x) => (8 * half * x) / Math.hypot(...u)));
          marks.append(line(origin, end, solution === solved.target ? "ray" : "other-ray"));
        }
        const drawn = curves[i].map(view.place);
        marks.append(make("polyline", { class: "path", points: drawn.map((x) => x.map((c) => c.toFixed(1)).join()).join(" ") }));
        // An arrow head every so often along the way, as far as the drawing has room for them.
        let since = 0;
        for (let n = 1; n < drawn.length; n++) {
          const step = drawn[n].map((x, c) => x - drawn[n - 1][c]);
          since += Math.hypot(...step);
          if (since > 45 || n === drawn.length - 1) {
            marks.append(head(drawn[n], step, n === drawn.length - 1 ? 6 : 4, "path-head"));
            since = 0;
          }
        }
        marks.append(make("path", { class: "path-start", d: SHAPES[i](...drawn[0], 3.5) }),
          name(drawn[drawn.length - 1], `W(k)z${"₁₂"[i]}`));
        parts.push(marks);
      });
      this.part("paths").replaceChildren(...parts);
    }

    table(state, solved, attention) {
      state.tokens.forEach((sequence, i) => {
        const body = this.part(`table-${i}`);
        if (body.children.length !== sequence.length) {
          body.replaceChildren(...sequence.map((_, t) => make("tr", {},
            make("th", { scope: "row" }, make("label", {}, make("input", { type: "radio", name: `explorer-alpha-${i}`,
              value: t }), ` ${t + 1}`)),
            make("td"), make("td"), make("td", { class: "bar-cell" }, make("span", { class: "bar" }), make("span", {})))));
        }
        [...body.children].forEach((row, t) => {
          row.querySelector("input").checked = solved.chosen[i] === t;
          const margin = solved.target.margins[i][t];
          row.children[1].textContent = signed(solved.gamma[i][t]);
          row.children[2].textContent = solved.chosen[i] === t ? "selected"
            : solved.target.certificate?.[i][t] > 0 ? `λ = ${signed(solved.target.certificate[i][t])}`
              : margin === null ? "–" : solved.target.support[i][t] ? "1, support" : signed(margin);
          row.children[3].children[0].style.setProperty("--share", attention[i][t]);
          row.children[3].children[1].textContent = share(attention[i][t]);
        });
      });
    }

    curve(state, solved, run, k) {
      const [WIDTH, HEIGHT] = [400, 150];
      const last = Math.max(100, k);
      const y = (c) => 12 + (1 - c) * (HEIGHT - 36);
      const x = (n) => 34 + ((WIDTH - 44) * n) / last;
      const parts = [0, 0.5, 1].flatMap((c) => [line([34, y(c)], [WIDTH - 10, y(c)], c ? "grid" : "grid axis"),
        make("text", { class: "tick", x: 4, y: y(c) + 4 }, String(c))]);
      parts.push(make("text", { class: "tick", x: 34, y: HEIGHT - 5 }, "step 0"),
        make("text", { class: "tick", x: WIDTH - 10, y: HEIGHT - 5, "text-anchor": "end" }, String(last)));
      for (const [name, solution] of [["nuc", solved.nuc], ["fro", solved.fro]]) {
        if (solution.status !== "solved") continue;
        const every = Math.max(1, Math.ceil(k / 300));
        const points = [];
        for (let n = 0; n <= k; n += every) {
          const c = explorer.correlation(run.weights[n], solution.W);
          if (Number.isFinite(c)) points.push(`${x(n).toFixed(1)},${y(Math.max(0, c)).toFixed(1)}`);
        }
        parts.push(make("polyline", { class: `curve ${solution === solved.target ? "target" : "other"}`, points: points.join(" ") }));
      }
      this.part("curve").replaceChildren(...parts);
    }

    words(state, solved, W, k) {
      const { target, standing, chosen } = solved;
      const names = { fro: "Frobenius", nuc: "nuclear" };
      const correlations = ["fro", "nuc"].map((norm) => {
        const c = solved[norm].status === "solved" ? explorer.correlation(W, solved[norm].W) : NaN;
        return `${names[norm]} ${Number.isFinite(c) ? share(c) : "–"}`;
      });
      this.part("step").textContent = `Step ${k}`;
      this.part("correlation").textContent = correlations.join(" · ");
      const tokens = chosen.map((t, i) => `token ${t + 1} of sequence ${i + 1} (${standing[i]})`).join(" and ");
      const verdict = this.part("verdict");
      verdict.classList.toggle("none", target.status !== "solved");
      verdict.textContent = target.status === "solved"
        ? `The SVM selects ${tokens}. ${names[target.norm][0].toUpperCase()}${names[target.norm].slice(1)} norm ${signed(target.objective, 4)}, proved to a relative gap of ${target.gap < 1e-9 ? "less than 10⁻⁹" : target.gap.toExponential(0)}.`
        : target.status === "infeasible"
          ? `No separating W exists for ${chosen.map((t, i) => `token ${t + 1} of sequence ${i + 1}`).join(" and ")}. The proof: with weights λ on ${this.proof(target)}, the constraints add up to 0 ≥ 1.`
          : "This is so close to the edge of what can be separated that floating point cannot decide it.";
      this.spoken = `Step ${k}. ${verdict.textContent} Correlation with the SVM solution: ${correlations.join(", ")}.`;
    }

    proof(target) {
      return target.certificate.map((row, i) => {
        const tokens = row.flatMap((m, t) => (m > 0 ? [t + 1] : []));
        return tokens.length ? `token${tokens.length > 1 ? "s" : ""} ${tokens.join(", ")} of sequence ${i + 1}` : "";
      }).filter(Boolean).join(" and ");
    }
  }

  Object.assign(explorer, { View, make, position, reach, handles });
})();
