// Copies a BibTeX entry.  Where a page may not use the clipboard, as when it was opened from disk, it selects the entry instead.
"use strict";
addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll(".bibtex")) {
    const [text, button, said] = ["pre", ".bibtex-copy", ".bibtex-said"].map((name) => box.querySelector(name));
    const select = () => {
      getSelection().selectAllChildren(text);
      said.textContent = "Selected: press Ctrl+C (⌘C on a Mac).";
    };
    button.hidden = false;
    button.addEventListener("click", async () => {
      said.textContent = "";
      if (!window.isSecureContext || !navigator.clipboard || location.protocol === "file:") return select();
      try {
        await navigator.clipboard.writeText(text.textContent);
        said.textContent = "Copied.";
      } catch {
        select(); // the reader, or the browser, said no
      }
    });
  }
});
