// A reference to a statement shows it: on hovering, and when the keyboard reaches it.  Escape closes; a finger follows the link as ever.
// The statements of a page come as a script when the first of them is asked for, which works on a page opened from disk too.
"use strict";
(() => {
  const WAIT = 220, LINGER = 240; // milliseconds: not for a mouse passing by; time enough to move onto the preview
  const root = () => new URL(document.documentElement.dataset.content_root ?? "./", location.href);
  const pages = new Map(); // page → promise of its statements
  const arrived = new Map();
  window.attsvmPreviews = async (page, packed) => {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    arrived.get(page)?.(JSON.parse(await new Response(text).text()));
  };

  const load = (page) => {
    if (!pages.has(page)) {
      pages.set(page, new Promise((resolve) => {
        arrived.set(page, resolve);
        const script = document.createElement("script");
        script.src = new URL(`_static/previews/${page.replaceAll("/", "-")}.js`, root()).href;
        script.addEventListener("error", () => resolve({})); // then a reference is just a link
        document.head.append(script);
      }));
    }
    return pages.get(page);
  };
  const target = (link) => {
    const address = new URL(link.href);
    const page = decodeURI(address.pathname).slice(decodeURI(root().pathname).length).replace(/\.html$/, "");
    return [page, decodeURIComponent(address.hash.slice(1))];
  };

  let box = null, current = null, timer = 0;
  const make = () => {
    box = document.createElement("div");
    box.id = "preview";
    box.className = "preview bd-article";
    box.setAttribute("role", "tooltip");
    box.hidden = true;
    box.addEventListener("pointerenter", () => clearTimeout(timer));
    box.addEventListener("pointerleave", later);
    document.body.append(box);
  };
  const hide = () => {
    clearTimeout(timer);
    current?.removeAttribute("aria-describedby");
    current = null;
    if (box) box.hidden = true;
  };
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(hide, LINGER);
  };
  const place = (link) => {
    const gap = 8, edge = 10;
    const lines = [...link.getClientRects()];
    const at = lines[0] ?? link.getBoundingClientRect(), end = lines.at(-1) ?? at;
    const width = Math.min(560, document.documentElement.clientWidth - 2 * edge);
    box.style.width = `${width}px`;
    box.style.left = `${Math.max(edge, Math.min(at.left - 16, document.documentElement.clientWidth - width - edge))}px`;
    const below = innerHeight - end.bottom - gap - edge, above = at.top - gap - edge;
    const up = box.scrollHeight > below && above > below;
    box.style.maxHeight = `${Math.max(120, up ? above : below)}px`;
    box.style.top = up ? "auto" : `${end.bottom + gap}px`;
    box.style.bottom = up ? `${innerHeight - at.top + gap}px` : "auto";
  };
  // A preview cannot be scrolled with keys, so a long formula gets smaller instead.
  const fit = () => {
    for (const formula of box.querySelectorAll(".formula")) {
      const share = formula.clientWidth / formula.scrollWidth;
      if (share < 1) formula.style.fontSize = `${0.98 * share}em`;
    }
  };
  const show = async (link) => {
    hide();
    current = link;
    const [page, name] = target(link);
    const html = (await load(page))[name];
    if (current !== link || !html) return;
    if (!box) make();
    box.innerHTML = html;
    box.hidden = false;
    link.setAttribute("aria-describedby", box.id);
    place(link);
    fit();
    place(link);
  };

  const previewed = (event) => event.target.closest?.("a.has-preview");
  document.addEventListener("pointerover", (event) => {
    const link = previewed(event);
    if (!link || event.pointerType === "touch" || box?.contains(link)) return;
    clearTimeout(timer);
    if (link !== current) timer = setTimeout(() => show(link), WAIT);
  });
  document.addEventListener("pointerout", (event) => {
    if (previewed(event)) later();
  });
  document.addEventListener("focusin", (event) => {
    const link = previewed(event);
    if (link?.matches(":focus-visible")) show(link);
  });
  document.addEventListener("focusout", (event) => {
    if (previewed(event)) hide();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && current) hide();
  });
  addEventListener("scroll", () => { if (current && box && !box.hidden) place(current); }, { passive: true });
})();
