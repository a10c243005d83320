// What is wider than its box scrolls inside it.  Mark such boxes, so that the style sheet can show that there is more,
// and let the keyboard reach them.  Without this script they scroll all the same.
"use strict";
(() => {
  const boxes = '.bd-article pre, .scrolls, .pst-scrollable-table-container';
  const mark = (box) => {
    const more = box.scrollWidth - box.clientWidth;
    box.classList.toggle("more-right", more > 1 && box.scrollLeft < more - 1);
    box.classList.toggle("more-left", more > 1 && box.scrollLeft > 1);
    if (more > 1 && !box.hasAttribute("tabindex")) box.setAttribute("tabindex", "0");
  };
  const seen = new WeakSet();
  const watch = new ResizeObserver((entries) => entries.forEach((entry) => mark(entry.target)));
  const markAll = () => document.querySelectorAll(boxes).forEach((box) => {
    mark(box);
    if (seen.has(box)) return;
    seen.add(box);
    watch.observe(box);
    box.addEventListener("scroll", () => mark(box), { passive: true });
  });
  // Paper does not scroll: the print style sheet shrinks a formula by its width, which only a browser knows.
  const measure = () => document.querySelectorAll(".formula .katex-html").forEach((drawn) => {
    const parts = [...drawn.children].map((part) => part.getBoundingClientRect());
    const width = Math.max(...parts.map((part) => part.right)) - Math.min(...parts.map((part) => part.left));
    const em = parseFloat(getComputedStyle(drawn.closest(".katex-display")).fontSize);
    drawn.closest(".katex-display").style.setProperty("--ems", Math.ceil(width / em + 1));
  });
  addEventListener("load", markAll);
  addEventListener("beforeprint", measure);
})();

// Excerpts among the results of a search show each formula once: what is read aloud stands beside what is seen.
if (typeof Search !== "undefined") {
  const plain = Search.htmlToText;
  Search.htmlToText = (text, anchor) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    page.querySelectorAll(".katex-mathml").forEach((formula) => formula.remove());
    return plain(page.documentElement.outerHTML, anchor);
  };
}
