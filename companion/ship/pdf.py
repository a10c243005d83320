"""The whole book on paper: one PDF, printed by a browser from the pages of the site."""

from __future__ import annotations

import json
import os
import re
import shutil
from html import escape
from pathlib import Path

import yaml

from attsvm import __version__
from companion.build.guard import exclusive
from companion.build.layout import Layout, commit
from companion.build.progress import Progress
from companion.errors import BuildError
from companion.ship import browser, last_site
from companion.ship.stitch import Part, outline, stitch

__all__ = ["NAME", "make"]

NAME = "attsvm-book.pdf"
"""The file, in the site's root."""
MARKS = re.compile(r"<!--book-pdf-->(?:.*?<!--/book-pdf-->)?", re.DOTALL)
"""Where a page may offer the PDF; nothing is shown there until there is one."""
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# Width of the text on A4 with the margins of paper.css, in pixels of 1/96 inch.
WIDTH = round((210 - 2 * 20) / 25.4 * 96)
# Widths of formulas, which the print style sheet needs to shrink what is too wide.
MEASURE = """async () => {
    await document.fonts.ready;
    await Promise.all([...document.images].map((image) => image.decode().catch(() => null)));
    for (const drawn of document.querySelectorAll(".formula .katex-html")) {
        const boxes = [...drawn.querySelectorAll(".katex-base")]
            .map((one) => one.getBoundingClientRect());
        const width = Math.max(...boxes.map((one) => one.right))
            - Math.min(...boxes.map((one) => one.left));
        const display = drawn.closest(".katex-display");
        const em = parseFloat(getComputedStyle(display).fontSize);
        display.style.setProperty("--ems", Math.ceil(width / em + 1));
    }
    return [...document.images].filter((image) => !image.naturalWidth).map((image) => image.src);
}"""
TIMES = ("results/times.js", "how-long.js")
"""What fills the tables of measured times."""
# Their links lead to pages of the site.
UNLINKED = """() => document.querySelectorAll("[id$=times-of-chapters] a")
    .forEach((link) => link.replaceWith(link.textContent))"""
NUMBER = """(pages) => {
    for (const place of document.querySelectorAll(".page-number"))
        place.textContent = pages[place.dataset.part];
}"""


def make(layout: Layout) -> Path:
    """Print the last site and offer the PDF, which lies in it, on its pages.

    Raises
    ------
    BuildError
        If there is no site, no browser, a picture is missing, or a part is not found in the PDF.
    """
    progress = Progress()
    with exclusive(layout, progress.say):
        site = last_site(layout)
        try:
            toc = yaml.safe_load(layout.toc.read_text(encoding="utf-8"))
            document, parts = stitch(site, outline(toc), _front(layout))
            layout.work.mkdir(parents=True, exist_ok=True)
            source, made = layout.work / "book.html", layout.work / NAME
            source.write_text(document, encoding="utf-8")
            progress.say(f"Printing {len(parts)} pages of the site")
            count = _print(site, source, made, parts)
            os.replace(made, site / NAME)
        finally:
            shutil.rmtree(layout.work, ignore_errors=True)
        size = f"{count} pages, {(site / NAME).stat().st_size / 1e6:.1f} MB"
        _offer(site, size)
        progress.say(f"Done: {size}")
    return site / NAME


def _front(layout: Layout) -> str:
    """The title page."""
    config = yaml.safe_load(layout.config.read_text(encoding="utf-8"))
    title, _, subtitle = escape(str(config["title"])).partition(", ")
    static = layout.site / "_static"
    times = json.loads((static / "results" / "times.json").read_text(encoding="utf-8"))
    logo = static / "logo.svg"
    image = f'<img src="{logo.absolute().as_uri()}" alt="">' if logo.is_file() else ""
    address = escape(config.get("repository", {}).get("url", ""))
    # As on the pages: no link to a repository that is not open yet.
    published = config["sphinx"]["config"].get("companion_published", True)
    source = f'Source: <a href="{address}">{address}</a>. ' if published and address else ""
    # The licences, as at the foot of every page.
    foot = re.sub(r"</?p>|<!--.*?-->", "", config.get("html", {}).get("extra_footer", ""))
    note = (
        f"Version {escape(__version__)}, state {commit(layout.root)[:12]}, executed with profile "
        f"“{escape(times['profile'])}”. Printed from the pages of the site, which also holds what "
        "is left out here: folded code, the passport of every figure, its data, and what is "
        f"interactive. {source}{foot}"
    )
    return (
        f'<header class="front">{image}<p class="front-title">{title}</p>'
        f'<p class="front-subtitle">{subtitle}</p><p>{escape(str(config["author"]))}</p>'
        f'<p class="front-note">{note}</p></header>'
    )


def _print(site: Path, source: Path, target: Path, parts: list[Part]) -> int:
    """Print twice: the second time the contents know the pages. Gives the number of pages."""
    import pikepdf
    from playwright.sync_api import Error, sync_playwright

    try:
        with sync_playwright() as playwright:
            engine = playwright.chromium.launch(executable_path=browser(), args=FLAGS)
            page = engine.new_page(viewport={"width": WIDTH, "height": 1000})
            page.set_default_timeout(300_000)
            page.goto(source.absolute().as_uri(), wait_until="load")
            page.emulate_media(media="print")
            for script in (site / "_static" / name for name in TIMES):
                if script.is_file():
                    page.add_script_tag(path=script)
            page.evaluate(UNLINKED)
            if missing := page.evaluate(MEASURE):
                raise BuildError("pictures could not be printed", missing)

            def write() -> None:
                # The format counts where no style sheet names one.
                page.pdf(path=target, format="A4", prefer_css_page_size=True,
                         print_background=True, outline=True, tagged=True)  # fmt: skip

            write()
            page.evaluate(NUMBER, _places(target, parts)[0])
            write()
            engine.close()
    except Error as error:
        said = str(error).splitlines()[:3]
        raise BuildError("the browser could not print the book", said) from error
    # The browser leaves its tags uncompressed: the same document in half the bytes.
    with pikepdf.open(target, allow_overwriting_input=True) as document:
        document.save(target, object_stream_mode=pikepdf.ObjectStreamMode.generate)
    return _places(target, parts)[1]


def _places(pdf: Path, parts: list[Part]) -> tuple[dict[str, int], int]:
    """On which page each part begins, and how many pages there are."""
    from pypdf import PdfReader

    reader = PdfReader(pdf)
    named = {name.removeprefix("/"): place for name, place in reader.named_destinations.items()}
    places: dict[str, int] = {}
    for part in parts:
        place = named.get(part.anchor)
        number = None if place is None else reader.get_destination_page_number(place)
        if number is None:
            raise BuildError(f"page {part.page}: its place in the PDF is not known")
        places[part.anchor] = number + 1
    return places, len(reader.pages)


def _offer(site: Path, size: str) -> None:
    """Link the PDF wherever a page has a place for it."""
    for path in sorted(site.rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        if "<!--book-pdf-->" in text:
            address = Path(os.path.relpath(site / NAME, path.parent)).as_posix()
            link = (
                f'<!--book-pdf--><a href="{address}" download>The whole book as PDF</a> '
                f"({size})<!--/book-pdf-->"
            )
            path.write_text(MARKS.sub(link, text), encoding="utf-8")
