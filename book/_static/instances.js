// Single instances behind a figure.  Nothing is loaded before a reader opens the view; then the data come as a script, because a
// page opened from disk may load that and no JSON.  Values are read with the mouse, a finger, or the slider under the plot.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const COLOURS = ["blue", "vermilion", "green", "purple", "ochre", "grey"];
  const MARKS = [
    (x, y) => `M${x - 4} ${y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0`, (x, y) => `M${x} ${y - 5}l5 5l-5 5l-5 -5z`,
    (x, y) => `M${x - 4} ${y - 4}h8v8h-8z`, (x, y) => `M${x} ${y - 5}l5 9h-10z`,
  ];
  const MARGIN = { left: 56, right: 14, top: 12, bottom: 40 };
  const waiting = new Map();
  window.attsvmInstances = (name, content) => waiting.get(name)?.(content);

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const drawn = (name, attributes, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // Differences of whole multiples of a unit, of the logarithm where the axis is logarithmic.
  const decode = (coded, quantity) => {
    let whole = 0;
    return coded && coded.map((step) => {
      if (step === null) return null;
      whole += step;
      const value = whole * quantity.unit;
      return quantity.log ? 10 ** value : value;
    });
  };
  const raised = (power) => String(power).replace(/[-\d]/g, (sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]);
  const words = (value, quantity) => {
    if (value === null || value === undefined) return "–";
    if (!quantity.log) {
      const digits = Math.max(0, Math.round(-Math.log10(quantity.unit)));
      return value.toFixed(Math.min(digits, 4)).replace(/^-(?=0\.?0*$)/, "").replace("-", "−");
    }
    const power = Math.floor(Math.log10(value) + 1e-9);
    if (power >= -3 && power < 5) return Number(value.toPrecision(3)).toString();
    return `${(value / 10 ** power).toFixed(2)} × 10${raised(power)}`;
  };

  const ticks = (low, high, log, most) => {
    if (log) {
      const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
      const every = Math.max(1, Math.ceil((last - first + 1) / most));
      return Array.from({ length: Math.max(0, Math.floor((last - first) / every) + 1) }, (_, i) => 10 ** (first + i * every));
    }
    const raw = (high - low) / most, size = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((factor) => factor * size).find((one) => one >= raw);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) found.push(Number((k * step).toPrecision(12)));
    return found;
  };
  const tickText = (value, log) => {
    const power = Math.round(Math.log10(value));
    return log && (power < -2 || power > 4) ? `10${raised(power)}` : String(value).replace("-", "−");
  };

  class View {
    constructor(box, content) {
      this.box = box;
      this.content = content;
      this.at = content.x.values.length - 1;
      this.seed = content.seeds[0];
      this.quantity = content.quantities[0];
      this.hidden = new Set();
      this.values = new Map(content.quantities.map((q) => [q.name, content.curves.map((curve) => ({
        mean: decode(curve.mean[q.name], q), each: curve.values[q.name].map((coded) => decode(coded, q)),
      }))]));
      this.build();
      new ResizeObserver(() => this.draw()).observe(this.plot);
    }

    build() {
      const { content } = this, name = this.box.dataset.figure;
      const select = element("select", { id: `${name}-quantity` },
        ...content.quantities.map((q) => element("option", { value: q.name }, q.label)));
      select.addEventListener("input", () => {
        this.quantity = content.quantities[select.selectedIndex];
        this.draw();
      });
      const last = content.seeds.length - 1;
      this.number = element("input", { id: `${name}-instance`, type: "number", min: content.seeds[0], max: content.seeds[last], step: "any", value: this.seed });
      this.number.addEventListener("change", () => this.choose(Number(this.number.value)));
      this.number.addEventListener("input", () => {
        if (content.seeds.includes(this.number.valueAsNumber)) this.choose(this.number.valueAsNumber);
      });
      this.number.addEventListener("keydown", (event) => {
        const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        this.choose(content.seeds[Math.min(last, Math.max(0, content.seeds.indexOf(this.seed) + step))]);
      });
      this.slider = element("input", { id: `${name}-place`, type: "range", min: 0, max: content.x.values.length - 1, step: 1, value: this.at });
      this.slider.addEventListener("input", () => this.move(Number(this.slider.value)));
      this.plot = element("div", { class: "instances-plot" });
      this.plot.addEventListener("pointermove", (event) => this.point(event));
      this.plot.addEventListener("pointerdown", (event) => this.point(event));
      this.where = element("output", {});
      this.table = element("table", {});
      const cut = content.seeds.length < content.total ? ` (the first ${content.seeds.length} of ${content.total} instances)` : "";
      this.still = this.box.querySelector(".instances-still");
      this.still.replaceChildren(`Strong lines: the chosen instance${cut}. Dashed: the mean over all that count. Faint: the others.`);
      this.still.after(
        element("div", { class: "instances-choice" },
          element("div", {}, element("label", { for: select.id }, "Drawn"), select),
          element("div", {}, element("label", { for: this.number.id }, "Instance (seed)"), this.number)),
        this.plot,
        element("div", { class: "instances-along" }, element("label", { for: this.slider.id }, content.x.label), this.slider, this.where),
        element("div", { class: "instances-values scrolls", tabindex: 0, role: "region", "aria-label": "Values at the chosen place" }, this.table),
      );
    }

    choose(seed) {
      const { seeds } = this.content;
      const nearest = Number.isFinite(seed) ? seeds.reduce((a, b) => (Math.abs(b - seed) < Math.abs(a - seed) ? b : a)) : this.seed;
      this.seed = nearest;
      this.number.value = nearest;
      this.draw();
    }

    move(place) {
      this.at = place;
      this.slider.value = place;
      this.tell();
    }

    point(event) {
      const x = event.clientX - this.plot.getBoundingClientRect().left;
      const gaps = this.content.x.values.map((value) => Math.abs(this.x(value) - x));
      this.move(gaps.indexOf(Math.min(...gaps)));
    }

    draw() {
      const width = this.plot.clientWidth;
      if (!width) return;
      const height = Math.round(Math.min(380, Math.max(240, width * 0.5)));
      const { content, quantity } = this;
      const curves = this.values.get(quantity.name);
      const shown = curves.filter((_, i) => !this.hidden.has(i));
      const all = (shown.length ? shown : curves).flatMap((curve) => [curve.mean, ...curve.each]).flat().filter((v) => v !== null && v !== undefined);
      const scale = (low, high, log, from, to) => {
        const f = log ? Math.log : (v) => v;
        return (value) => from + ((f(value) - f(low)) / (f(high) - f(low) || 1)) * (to - from);
      };
      let [low, high] = [Math.min(...all), Math.max(...all)];
      if (quantity.log) [low, high] = [low / 1.15, high * 1.15];
      else [low, high] = [low - 0.04 * (high - low || 1), high + 0.04 * (high - low || 1)];
      const places = content.x.values;
      this.x = scale(places[0], places.at(-1), content.x.log, MARGIN.left, width - MARGIN.right);
      this.y = scale(low, high, quantity.log, height - MARGIN.bottom, MARGIN.top);

      const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" });
      for (const value of ticks(low, high, quantity.log, 6)) {
        svg.append(drawn("path", { class: "grid", d: `M${MARGIN.left} ${this.y(value)}H${width - MARGIN.right}` }),
          drawn("text", { x: MARGIN.left - 8, y: this.y(value) + 4, "text-anchor": "end" }, tickText(value, quantity.log)));
      }
      for (const value of ticks(places[0], places.at(-1), content.x.log, width < 500 ? 4 : 8)) {
        svg.append(drawn("path", { class: "grid", d: `M${this.x(value)} ${MARGIN.top}V${height - MARGIN.bottom}` }),
          drawn("text", { x: this.x(value), y: height - MARGIN.bottom + 18, "text-anchor": "middle" }, tickText(value, content.x.log)));
      }
      svg.append(drawn("text", { x: (MARGIN.left + width - MARGIN.right) / 2, y: height - 4, "text-anchor": "middle" }, content.x.label));
      const path = (values) => values.reduce(([d, pen], value, i) => (value === null
        ? [d, "M"] : [`${d}${pen}${this.x(places[i]).toFixed(1)} ${this.y(value).toFixed(1)}`, "L"]), ["", "M"])[0];
      const chosen = content.seeds.indexOf(this.seed);
      curves.forEach((curve, i) => {
        if (this.hidden.has(i)) return;
        const others = curve.each.filter((values, k) => values && k !== chosen).map(path).join("");
        svg.append(drawn("path", { class: `faint ${COLOURS[i % COLOURS.length]}`, d: others }));
      });
      curves.forEach((curve, i) => {
        if (this.hidden.has(i)) return;
        const colour = COLOURS[i % COLOURS.length];
        if (curve.mean) svg.append(drawn("path", { class: `mean ${colour}`, d: path(curve.mean) }));
        const own = curve.each[chosen];
        if (!own) return;
        svg.append(drawn("path", { class: `own ${colour}${i >= COLOURS.length ? " second" : ""}`, d: path(own) }));
        const every = Math.max(1, Math.floor(own.length / 7));
        const marks = own.map((v, k) => (v !== null && (k + i) % every === 0 ? MARKS[i % MARKS.length](this.x(places[k]), this.y(v)) : "")).join("");
        svg.append(drawn("path", { class: `mark ${colour}`, d: marks }));
      });
      this.cursor = svg.appendChild(drawn("path", { class: "cursor" }));
      this.height = height;
      this.plot.replaceChildren(svg);
      this.tell();
    }

    // The values at the cursor: in the table, and in words for those who hear the slider.
    tell() {
      const { content, quantity } = this;
      const place = content.x.values[this.at];
      if (this.cursor) this.cursor.setAttribute("d", `M${this.x(place)} ${MARGIN.top}V${this.height - MARGIN.bottom}`);
      const at = String(place);
      this.where.value = at;
      const chosen = content.seeds.indexOf(this.seed);
      const curves = this.values.get(quantity.name);
      const rows = content.curves.map((curve, i) => {
        const own = curves[i].each[chosen]?.[this.at];
        const left = curves[i].each[chosen] ? words(own, quantity) : "does not count here";
        return [curve, i, left, words(curves[i].mean?.[this.at], quantity)];
      });
      const spoken = rows.filter(([, i]) => !this.hidden.has(i)).map(([curve, , own, mean]) => `${curve.name}: ${own}, mean ${mean}`);
      this.slider.setAttribute("aria-valuetext", `${content.x.label} ${at}. ${spoken.join(". ")}`);
      if (this.table.tBodies.length) {
        rows.forEach(([curve, i, own, mean]) => {
          const cells = this.table.tBodies[0].rows[i].cells;
          cells[1].textContent = own;
          cells[2].textContent = mean;
          if (content.note) cells[4].textContent = curve.notes[chosen] ?? "–";
        });
      } else this.tabulate(rows, chosen);
      this.table.caption.textContent = `${quantity.label}, instance ${this.seed}, ${content.x.label.toLowerCase()} ${at}`;
    }

    tabulate(rows, chosen) {
      const { content } = this;
      const heads = ["curve", "instance", "mean", "counted", ...(content.note ? [content.note.toLowerCase()] : [])];
      this.table.append(element("caption", {}),
        element("thead", {}, element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)))),
        element("tbody", {}, ...rows.map(([curve, i, own, mean]) => {
          const colour = COLOURS[i % COLOURS.length];
          const key = drawn("svg", { class: "key", width: 34, height: 14, viewBox: "0 0 34 14", "aria-hidden": "true" });
          key.append(drawn("path", { class: `own ${colour}${i >= COLOURS.length ? " second" : ""}`, d: "M1 7H33" }),
            drawn("path", { class: `mark ${colour}`, d: MARKS[i % MARKS.length](17, 7) }));
          const tick = element("input", { type: "checkbox" });
          tick.checked = true;
          tick.addEventListener("change", () => {
            this.hidden[tick.checked ? "delete" : "add"](i);
            this.draw();
          });
          const cells = [own, mean, `${curve.of} of ${content.total}`, ...(content.note ? [curve.notes[chosen] ?? "–"] : [])];
          return element("tr", {}, element("th", { scope: "row" }, element("label", {}, tick, key, curve.name)),
            ...cells.map((text) => element("td", {}, text)));
        })));
    }
  }

  const open = (box) => {
    const still = box.querySelector(".instances-still");
    still.textContent = "Loading …";
    waiting.set(box.dataset.figure, (content) => new View(box, content));
    const script = element("script", { src: box.dataset.source });
    script.addEventListener("error", () => { still.textContent = "The instances could not be loaded."; });
    document.head.append(script);
  };
  addEventListener("DOMContentLoaded", () => {
    for (const box of document.querySelectorAll("details.instances")) {
      let loaded = false;
      const load = () => {
        if (!box.open || loaded) return;
        loaded = true;
        open(box);
      };
      box.addEventListener("toggle", load);
      load();
    }
  });
})();
