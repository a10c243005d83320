// The gallery's filter.  What is chosen stands in the address, so that a choice can be sent to someone.
"use strict";
addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector(".gallery-form");
  const items = [...document.querySelectorAll(".gallery > li")];
  if (!form || !items.length) return;
  const nothing = document.querySelector(".gallery-nothing");
  const fields = ["section", "verdict", "words"];

  const fits = (item, chosen) => {
    const { section, verdicts, words } = item.dataset;
    return (!chosen.section || section === chosen.section)
      && (!chosen.verdict || verdicts.split("|").includes(chosen.verdict))
      && chosen.words.toLowerCase().split(/\s+/).every((word) => words.includes(word));
  };
  const show = () => {
    const chosen = Object.fromEntries(fields.map((name) => [name, form.elements[name].value.trim()]));
    let count = 0;
    for (const item of items) {
      item.hidden = !fits(item, chosen);
      if (!item.hidden) count += 1;
    }
    form.querySelector("output").value = count === items.length
      ? `${count} figures` : `${count} of ${items.length} figures`;
    nothing.hidden = count > 0;
    return chosen;
  };
  const keep = () => {
    const chosen = show();
    const state = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value));
    // A fragment, because a page opened from disk may change nothing else of its address.
    history.replaceState(null, "", state.size ? `#${state}` : location.pathname.split("/").pop());
  };
  const read = () => {
    const state = new URLSearchParams(location.hash.slice(1));
    for (const name of fields) {
      const field = form.elements[name];
      const value = state.get(name) ?? "";
      const known = name === "words" || [...field.options].some((option) => option.value === value);
      field.value = known ? value : "";
    }
    show();
  };

  form.hidden = false;
  form.addEventListener("input", keep);
  form.addEventListener("submit", (event) => event.preventDefault());
  nothing.querySelector("button").addEventListener("click", () => {
    form.reset();
    keep();
    form.elements.section.focus();
  });
  addEventListener("hashchange", read);
  read();
});
