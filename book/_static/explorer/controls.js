// Builds the page's controls and listens: pointer, keyboard, buttons, the address.
"use strict";
(() => {
  const explorer = globalThis.attsvmExplorer;
  const { make } = explorer;
  const STILL = matchMedia("(prefers-reduced-motion: reduce)");
  const BUDGET = 12; // milliseconds of descent per frame, so that dragging stays smooth

  const option = ([value, text]) => make("option", { value }, text);
  const select = (id, text, options) => make("p", { class: "field" }, make("label", { for: `explorer-${id}` }, text),
    make("select", { id: `explorer-${id}`, "data-field": id }, ...options.map(option)));
  const button = (action, text, more = {}) => make("button", { type: "button", "data-action": action, ...more }, text);
  const slider = (id, text, max, step) => make("p", { class: "field" },
    make("label", { for: `explorer-${id}` }, text),
    make("input", { id: `explorer-${id}`, type: "range", min: 0, max, step, "data-field": id }));
  const drawing = (title, part, height, ...children) => make("svg", { viewBox: `0 0 400 ${height}`, "data-part": part,
    role: children.length ? "group" : "img", "aria-label": title }, ...children);
  const table = (i) => make("div", { class: `readout sequence-${i + 1}` },
    make("table", {}, make("caption", {}, make("span", { class: "key", "aria-hidden": "true" }, i ? "■" : "●"),
      ` Sequence ${i + 1}`),
    make("thead", {}, make("tr", {}, ...["Token", "Score", "Margin", "Attention"].map((text) =>
      make("th", { scope: "col" }, text)))), make("tbody", { "data-part": `table-${i}` })),
    make("p", { class: "few" }, button(`more-${i}`, "Add a token"), button(`fewer-${i}`, "Remove the last")));

  const build = () => [
    make("div", { class: "choices" },
      select("preset", "Instance", [...Object.entries(explorer.PRESETS).map(([key, { name }]) => [key, name]),
        ["", "Your own"]]),
      select("weights", "Descent on", [["W", "W"], ["KQ", "K and Q, W = KQᵀ"]]),
      select("by", "Scores", [["v", "from v: vᵀx"], ["pick", "picked: 1 for the selected token, 0 for the others"]]),
      select("follow", "SVM for", [["best", "the tokens of highest score"], ["own", "the tokens you pick"]])),
    make("p", { "data-part": "verdict", class: "verdict-line" }),
    make("div", { class: "planes" },
      make("div", { class: "plane" }, make("p", { class: "plane-title" }, "Tokens and queries: drag them"),
        drawing("Tokens, queries and the SVM's separating lines", "tokens", 400,
          make("g", { "data-part": "token-back", "aria-hidden": "true" }), make("g", { "data-part": "token-handles" }))),
      make("div", { class: "plane" }, make("p", { class: "plane-title" }, "Training moves W(k)z"),
        drawing("Trajectories of W z for both queries, and the rays of the SVM solution", "paths", 400))),
    make("div", { class: "transport" }, button("play", "Play", { class: "main" }), button("step-1", "1 step"),
      button("step-100", "100 steps"), button("restart", "Back to the start"),
      slider("k", "Step", explorer.STEPS, 1), slider("start", "Start", explorer.FARTHEST, 0.1)),
    make("div", { class: "readouts" }, table(0), table(1),
      make("div", { class: "readout" }, make("p", { class: "plane-title" }, make("span", { "data-part": "step" }),
        ": correlation with the SVM solution"),
      make("p", { "data-part": "correlation", class: "numbers" }),
      drawing("Correlation of W(k) with both SVM solutions against the step", "curve", 150))),
    make("p", { id: "explorer-keys", class: "hint" },
      "Arrow keys move the point that has the focus, in finer steps with Shift. Enter selects a token. The address of this page holds what you set."),
    make("p", { class: "visually-hidden", "data-part": "live", "aria-live": "polite", role: "status" }),
  ];

  class App {
    constructor(root) {
      this.root = root;
      root.replaceChildren(...build());
      root.classList.add("running");
      this.view = new explorer.View(root);
      this.playing = false;
      this.scheduled = false;
      this.wanted = null; // where a finger has moved a point since the last frame
      this.field = (id) => root.querySelector(`[data-field="${id}"]`);
      this.fromAddress();
      root.addEventListener("click", (event) => this.clicked(event));
      root.addEventListener("input", (event) => this.entered(event));
      this.listenToHandles(root.querySelector('[data-part="tokens"]'));
      addEventListener("hashchange", () => {
        if (location.hash.slice(1) !== explorer.write(this.state)) this.fromAddress();
      });
      STILL.addEventListener("change", () => { this.stop(); this.refresh(); });
    }

    fromAddress() {
      let problem = "";
      let state = explorer.preset("a1");
      if (location.hash.length > 1) {
        try {
          state = explorer.read(location.hash);
        } catch (error) {
          if (!(error instanceof explorer.AddressError)) throw error;
          problem = `The address could not be read: ${error.message}. This is the first instance instead.`;
        }
      } else {
        state.k = 60; // something to see before anything is pressed
      }
      this.set(state, problem);
    }

    /** Show a state; all else follows from it. */
    set(state, problem = "") {
      this.state = state;
      this.problem = problem;
      this.view.half = explorer.reach(state);
      this.solve();
    }

    solve() {
      this.solved = explorer.solved(this.state);
      this.run = explorer.run(this.state, this.solved);
      this.refresh();
    }

    change(edit, still = false) {
      this.problem = "";
      this.state = explorer.edited(this.state, edit);
      // The window stays while a finger holds a point, or the point would run away from it.
      if (!still) this.view.half = explorer.reach(this.state);
      this.solve();
    }

    /** Compute up to step k and draw, now as far as the budget allows and the rest in later frames. */
    refresh() {
      const until = performance.now() + BUDGET;
      let reached = this.run.weights.length - 1;
      while (reached < this.state.k && performance.now() < until) {
        reached = Math.min(this.state.k, reached + 10);
        this.run.advance(reached);
      }
      this.view.draw(this.state, this.solved, this.run, Math.min(reached, this.state.k));
      this.showFields();
      if (reached < this.state.k) this.later();
      clearTimeout(this.settling);
      this.settling = setTimeout(() => this.settled(), this.playing ? 1500 : 350);
    }

    /** In the next frame: move what was dragged to where it is by then, and draw. */
    later() {
      if (this.scheduled) return;
      this.scheduled = true;
      requestAnimationFrame(() => {
        this.scheduled = false;
        const { wanted } = this;
        this.wanted = null;
        if (wanted) this.move(...wanted, true);
        else this.refresh();
      });
    }

    /** Once things are quiet: say it, and write the address. */
    settled() {
      if (this.playing) return;
      const live = this.view.part("live");
      if (live.textContent !== this.view.spoken) live.textContent = this.view.spoken;
      if (this.problem) return; // keep the address that could not be read, for whoever wants to mend it
      // Not history.replaceState: some browsers refuse it on a page opened from disk.
      const address = explorer.write(this.state);
      if (location.hash.slice(1) !== address) location.replace(`#${address}`);
    }

    showFields() {
      const { state } = this;
      this.field("preset").value = state.preset ?? "";
      this.field("weights").value = state.weights;
      this.field("by").value = state.by;
      this.field("follow").value = state.chosen ? "own" : "best";
      this.field("follow").disabled = state.by === "pick";
      this.field("k").value = state.k;
      this.field("k").setAttribute("aria-valuetext", `step ${state.k}`);
      this.field("start").value = state.start;
      const start = state.start ? `along the SVM solution, at length ${state.start}` : "from zero";
      this.field("start").setAttribute("aria-valuetext", start);
      this.field("start").previousSibling.textContent = `Start ${start}`;
      const play = this.root.querySelector('[data-action="play"]');
      play.hidden = STILL.matches;
      play.textContent = this.playing ? "Pause" : "Play";
      state.tokens.forEach(({ length }, i) => {
        this.root.querySelector(`[data-action="more-${i}"]`).disabled = length > 4;
        this.root.querySelector(`[data-action="fewer-${i}"]`).disabled = length < 4;
      });
      if (this.problem) this.view.part("verdict").textContent = this.problem;
      if (this.problem) this.view.spoken = this.problem;
    }

    stop() {
      this.playing = false;
    }

    play() {
      this.playing = true;
      if (this.state.k >= explorer.STEPS) this.state.k = 0;
      let [last, due] = [performance.now(), 0];
      const frame = (now) => {
        if (!this.playing) return;
        // Slowly where it bends, faster along the ray.
        due += (Math.min(now - last, 100) / 1000) * (20 + this.state.k / 3);
        last = now;
        if (due >= 1) {
          this.state.k = Math.min(explorer.STEPS, this.state.k + Math.floor(due));
          due %= 1;
          if (this.state.k === explorer.STEPS) this.stop();
          this.refresh();
        }
        if (this.playing) requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
    }

    goTo(k) {
      this.state.k = Math.max(0, Math.min(explorer.STEPS, k));
      this.refresh();
    }

    clicked(event) {
      const action = event.target.closest("[data-action]")?.dataset.action;
      if (!action) return;
      const [name, number] = action.split("-");
      const wasPlaying = this.playing;
      this.stop();
      if (name === "play" && !wasPlaying) this.play();
      if (name === "play") this.refresh();
      if (name === "step") this.goTo(this.state.k + Number(number));
      if (name === "restart") this.goTo(0);
      if (name === "more") {
        this.change((next) => {
          // Opposite to the mean of the others, where it is easy to find.
          const sequence = next.tokens[number];
          const mean = [0, 1].map((c) => sequence.reduce((sum, x) => sum + x[c], 0) / sequence.length);
          sequence.push(mean.map((x) => -0.5 * x));
        });
      }
      if (name === "fewer") {
        this.change((next) => {
          const left = next.tokens[number].length - 1;
          next.tokens[number].length = left;
          if (next.chosen) next.chosen[number] = Math.min(next.chosen[number], left - 1);
        });
      }
    }

    entered({ target }) {
      if (target.name?.startsWith("explorer-alpha-")) {
        this.pick(Number(target.name.at(-1)), Number(target.value));
        return;
      }
      const field = target.dataset.field;
      const { value } = target;
      if (!field) return;
      this.stop();
      if (field === "preset") {
        if (value) this.set({ ...explorer.preset(value), k: this.state.k });
        else this.change(() => {});
      }
      if (field === "k") this.goTo(Number(value));
      if (field === "weights" || field === "start") {
        // These leave the instance as it is: a preset stays one.
        this.state[field] = field === "start" ? Number(value) : value;
        this.solve();
      }
      if (field === "by") this.change((next) => { next.by = value; next.chosen = value === "pick" ? this.solved.chosen : null; });
      if (field === "follow") this.change((next) => { next.chosen = value === "own" ? this.solved.chosen : null; });
    }

    pick(i, t) {
      this.change((next) => {
        next.chosen = [...this.solved.chosen];
        next.chosen[i] = t;
      });
    }

    move(id, to, still) {
      const [kind, i, t] = id.split(".");
      this.change((next) => {
        if (kind === "x") next.tokens[i][t] = to;
        else if (kind === "z") next.queries[i] = to;
        else next.v = to;
      }, still);
    }

    listenToHandles(plane) {
      let held = null;
      plane.addEventListener("pointerdown", (event) => {
        if (!event.target.closest("[data-handle]") || event.button) return;
        // Of overlapping handles the nearest counts, not the one that was drawn last.
        const at = this.view.pointAt(event.clientX, event.clientY);
        const away = (id) => Math.hypot(...explorer.position(this.state, id).map((x, c) => x - at[c]));
        const id = explorer.handles(this.state).reduce((a, b) => (away(b) < away(a) ? b : a));
        const from = explorer.position(this.state, id);
        held = { id, pointer: event.pointerId, offset: from.map((x, c) => x - at[c]), moved: false,
          start: [event.clientX, event.clientY] };
        plane.setPointerCapture(event.pointerId);
        plane.querySelector(`[data-handle="${id}"]`).focus({ preventScroll: true });
        event.preventDefault();
      });
      plane.addEventListener("pointermove", (event) => {
        if (!held || event.pointerId !== held.pointer) return;
        // A trembling finger still clicks.
        held.moved ||= Math.hypot(event.clientX - held.start[0], event.clientY - held.start[1]) > 4;
        if (!held.moved) return;
        const to = this.view.pointAt(event.clientX, event.clientY).map((x, c) => Math.round((x + held.offset[c]) * 100) / 100);
        this.wanted = [held.id, to];
        this.later();
      });
      const release = (event) => {
        if (!held || event.pointerId !== held.pointer) return;
        const [kind, i, t] = held.id.split(".");
        if (!held.moved && event.type === "pointerup" && kind === "x") this.pick(Number(i), Number(t));
        if (this.wanted) this.move(...this.wanted, true);
        this.wanted = null;
        this.view.half = explorer.reach(this.state);
        this.refresh();
        held = null;
      };
      plane.addEventListener("pointerup", release);
      plane.addEventListener("pointercancel", release);
      plane.addEventListener("keydown", (event) => {
        const id = event.target.dataset?.handle;
        const step = event.shiftKey ? 0.01 : 0.1;
        const by = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] }[event.key];
        if (id && by) {
          this.move(id, explorer.position(this.state, id).map((x, c) => x + by[c]), false);
        } else if (id?.startsWith("x") && (event.key === "Enter" || event.key === " ")) {
          this.pick(...id.split(".").slice(1).map(Number));
        } else {
          return;
        }
        event.preventDefault();
      });
    }
  }

  const start = () => {
    const root = document.querySelector(".explorer");
    if (root) explorer.app = new App(root);
  };
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", start);
  else start();
})();
