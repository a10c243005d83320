// Fills the tables of measured times from results/times.js. A script, not a fetch: it also works on a page opened from disk.
"use strict";
(() => {
  const times = window.attsvmTimes;
  if (!times) return;
  const duration = (seconds) => {
    if (seconds < 0.1) return `${Number((1000 * seconds).toPrecision(2))}\u00a0ms`;
    if (seconds < 120) return `${Number(seconds.toPrecision(seconds < 100 ? 2 : 3))}\u00a0s`;
    return `${Math.floor(seconds / 60)}\u00a0min ${Math.round(seconds % 60)}\u00a0s`;
  };
  const size = (bytes) => (bytes ? `${Math.round(bytes / 1e6)}\u00a0MB` : "not measured");
  const fill = (id, rows) => {
    const body = document.querySelector(`[id$="${id}"] tbody`); // in the PDF names of pages come first
    body.replaceChildren(...rows.map(([head, ...cells]) => {
      const row = document.createElement("tr");
      const first = document.createElement("th");
      first.scope = "row";
      first.append(head);
      row.append(first, ...cells.map((text) => {
        const cell = document.createElement("td");
        cell.textContent = text;
        return cell;
      }));
      return row;
    }));
  };
  const chapters = Object.entries(times.chapters);
  const link = (id) => {
    const anchor = document.createElement("a");
    anchor.href = `../${id}.html`;
    anchor.textContent = id;
    return anchor;
  };
  // A chapter that went on where an earlier build was cut off was only timed from there.
  const spent = (seconds, resumed) => `${resumed ? "more than " : ""}${duration(seconds)}`;
  const total = chapters.reduce((sum, [, chapter]) => sum + chapter.seconds, 0);
  const most = Math.max(...chapters.map(([, chapter]) => chapter.memory || 0));
  fill("times-of-chapters", [
    ...chapters.map(([id, chapter]) => [link(id), spent(chapter.seconds, chapter.resumed), size(chapter.memory)]),
    [`All, profile ${times.profile}`, `${spent(total, chapters.some(([, chapter]) => chapter.resumed))} one after another`, `${size(most)} at most`],
  ]);
  const both = times.chapters["how-long/authors-way"]?.kernel?.["authors-way"];
  if (both) {
    fill("times-of-both-ways", both.map((row) => [
      row.work, `${row.instances} (${row.sampled} measured)`, duration(row.authors), duration(row.ours),
      `${Number((row.authors / row.ours).toPrecision(2))}\u00a0×`,
    ]));
  }
})();
