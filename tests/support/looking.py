"""One visit to a page finds all that can go wrong on it at one width and in one theme."""

from __future__ import annotations

import io
from pathlib import Path

from browsing import open_page, visitor
from PIL import Image
from playwright.sync_api import Browser, Page

WIDE, NARROW = 1400, 390
ZOOMED = 700
"""Width in pixels of the style sheet that a window of 1400 has at a zoom of 200 %."""
AXE = (Path(__file__).parents[1] / "site" / "axe" / "axe.min.js").read_text(encoding="utf-8")
FINDINGS = """async () => {
    const result = await axe.run(document, { resultTypes: ["violations"] });
    return result.violations
        .filter((one) => ["serious", "critical"].includes(one.impact))
        .flatMap((one) => one.nodes.map(
            (node) => `axe, ${one.id}: ${node.target.join(" ")} ${node.html.slice(0, 90)}`));
}"""
PROBLEMS = """async () => {
    const found = [];
    const article = document.querySelector("article") ?? document.querySelector("main");

    // What a reader sees of an article, without code and without formulas, is no source.
    const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
    let text = "";
    while (walker.nextNode()) {
        const parent = walker.currentNode.parentElement;
        if (!parent.closest("pre, code, script, style, .math")) text += walker.currentNode.data;
    }
    for (const sign of ["$", "\\\\(", "\\\\[", "\\\\begin"])
        if (text.includes(sign)) found.push(`raw ${sign}`);

    // Every formula is drawn for the eye, and for the ear.
    for (const box of article.querySelectorAll(".math")) {
        const drawn = box.querySelector(".katex-html .katex-base");
        const heard = box.querySelector("math :is(mi, mn, mo, mtext)");
        if (!drawn || !heard || box.querySelector("merror"))
            found.push(`formula not drawn: ${box.textContent.slice(0, 80)}`);
        else if (drawn.checkVisibility() && drawn.getBoundingClientRect().width < 2)
            found.push(`formula without width: ${box.textContent.slice(0, 80)}`);
    }

    // Every picture of this theme loads; the other theme's stays where it is.
    const pictures = [...article.querySelectorAll("img")]
        .filter((image) => image.checkVisibility());
    for (const image of pictures) image.loading = "eager";
    await Promise.all(pictures.map((image) => image.decode().catch(() => null)));
    for (const image of pictures)
        if (!image.naturalWidth || image.getBoundingClientRect().width < 10)
            found.push(`picture not drawn: ${image.src}`);
    for (const card of document.querySelectorAll(".figure-card")) {
        const shown = [...card.querySelectorAll("img.figure-image")]
            .filter((image) => image.checkVisibility());
        const theme = `on-${document.documentElement.dataset.theme}`;
        if (shown.length !== 1 || !shown[0].classList.contains(theme))
            found.push(`figure shows ${shown.length} pictures in theme ${theme}`);
    }
    return found;
}"""
SPILLING = """() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const wide = [...document.querySelectorAll("body *")]
        .filter((one) => one.getBoundingClientRect().right > width + 1)
        .slice(0, 4).map((one) => `${one.tagName}.${one.className}`);
    return [`wider than the window of ${width}: ${wide.join(", ")}`];
}"""


def _colours(picture: bytes) -> int:
    """Number of clearly different colours in a screenshot."""
    image = Image.open(io.BytesIO(picture)).convert("RGB").quantize(32).convert("RGB")
    colours = image.getcolors(image.width * image.height) or []
    return sum(1 for count, _ in colours if count > 20)


def _blank_figures(page: Page) -> list[str]:
    """Figures with nothing drawn on them."""
    return [
        f"blank figure: {image.get_attribute('src')}"
        for image in page.locator(".figure-card img.figure-image").all()
        if image.is_visible() and _colours(image.screenshot()) < 4
    ]


def visit(
    browser: Browser, root: str, pages: list[str], width: int, theme: str, *, axe: bool = False
) -> list[str]:
    """Everything that is wrong with the pages at one width and in one theme.

    Parameters
    ----------
    browser
        The browser.
    root
        Address of the site: a server, or a folder on disk.
    pages
        Paths of the pages.
    width, theme
        Width of the window in pixels; "light" or "dark".
    axe
        Whether axe-core looks for barriers too, figures are looked at for being blank, and the
        window is narrowed to what a zoom of 200 % leaves.
    """
    found: list[str] = []
    with visitor(browser, root, width, theme) as (page, problems):
        for name in pages:
            open_page(page, f"{root}/{name}")
            wrong = page.evaluate(PROBLEMS) + page.evaluate(SPILLING)
            if axe:
                page.evaluate(AXE)
                wrong += page.evaluate(FINDINGS) + _blank_figures(page)
                page.set_viewport_size({"width": ZOOMED, "height": 450})
                wrong += page.evaluate(SPILLING)
                page.set_viewport_size({"width": width, "height": 900})
            found += [f"{name}: {text}" for text in wrong]
        return found + problems
