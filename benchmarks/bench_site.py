"""What a page of the built site weighs, and how soon its formulas can be read on a slow machine.

Every page is opened from a local web server in a fresh browser profile, 1400 pixels wide, and not
scrolled. Reported are the bytes of what the browser asked for, as they lie on disk and as a web
server sends them (gzip for text), formulas and their files apart; and, with the processor slowed
four times, the time from the start of the navigation until the browser has painted the first
formula (the heading, where no formula is in view), and until everything has the fonts it ends with.

    python benchmarks/bench_site.py [--site _build/html] [--pages 8] [--json FILE]
"""

from __future__ import annotations

import argparse
import functools
import gzip
import http.server
import json
import os
import re
import shutil
import statistics
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

SLOWER = 4
REPEATS = 5
TEXT = (".html", ".css", ".js", ".svg", ".json", ".txt")
MARKED = 5
"""So many formulas report their paint: the first may be out of sight."""
# The browser itself tells when a marked element was first painted; asking would slow it down.
WATCH = """
    window.painted = {};
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries())
            window.painted[entry.identifier] ??= entry.renderTime || entry.startTime;
    }).observe({ type: "element", buffered: true });
"""
# Milliseconds after the start of the navigation at which nothing changes any more.
SETTLED = """async () => {
    await document.fonts.ready;
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const undrawn = [...document.querySelectorAll("article .math")]
        .filter((formula) => !formula.querySelector(".katex-html .katex-base"));
    if (undrawn.length) throw new Error(`${undrawn.length} formulas are not drawn`);
    return performance.now();
}"""


def marked(page: bytes) -> bytes:
    """A page that reports the paint of its heading and of its first formulas."""
    head, article, rest = page.partition(b"<article")
    rest = rest.replace(b"<h1", b'<h1 elementtiming="heading"', 1)
    box = b'<span class="katex-base"'
    return head + article + rest.replace(box, box + b' elementtiming="formula"', MARKED)


class _Marking(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Send pages with marks, other files as they are."""
        path = Path(self.translate_path(self.path))
        if path.suffix != ".html" or not path.is_file():
            return super().do_GET()
        page = marked(path.read_bytes())
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder on 127.0.0.1 and give its address."""
    handler = functools.partial(_Marking, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def without_formulas(page: bytes) -> bytes:
    """A page less the markup of its formulas."""
    kept, at = [], 0
    while (start := page.find(b'<span class="katex">', at)) >= 0:
        kept.append(page[at:start])
        depth = 0
        for tag in re.finditer(rb"<(/?)span\b", page[start:]):
            depth += -1 if tag[1] else 1
            if depth == 0:
                at = start + tag.end() + len(b">")
                break
    return b"".join([*kept, page[at:]])


@contextmanager
def opened(browser: Browser) -> Iterator[Page]:
    """A tab of a fresh profile, 1400 pixels wide."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    yield context.new_page()
    context.close()


def weigh(browser: Browser, site: Path, root: str, page: str) -> dict[str, dict[str, int]]:
    """Bytes of everything that the first view of a page loads: address → raw and gzipped."""
    asked: list[str] = []
    with opened(browser) as tab:
        tab.on("requestfinished", lambda request: asked.append(request.url))
        tab.goto(f"{root}/{page}", wait_until="networkidle")
    found = {}
    for address in dict.fromkeys(asked):
        path = site / unquote(urlsplit(address).path).lstrip("/")
        content = path.read_bytes()
        if path.suffix == ".html":
            content = without_formulas(content)
        sent = len(gzip.compress(content, 6)) if path.suffix in TEXT else len(content)
        found[path.relative_to(site).as_posix()] = {"raw": len(content), "sent": sent}
    return found


def readable(browser: Browser, root: str, page: str) -> tuple[float, float]:
    """Milliseconds until the first formula is seen and until all is settled, processor slowed."""
    seen, settled = [], []
    for _ in range(REPEATS):
        with opened(browser) as tab:
            tab.add_init_script(WATCH)
            session = tab.context.new_cdp_session(tab)
            session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
            tab.goto(f"{root}/{page}", wait_until="commit")
            tab.wait_for_load_state("domcontentloaded")
            settled.append(float(tab.evaluate(SETTLED)))
            painted = tab.evaluate("window.painted")
            seen.append(float(painted.get("formula", painted["heading"])))
    return statistics.median(seen), statistics.median(settled)


def measure(site: Path, count: int) -> list[dict[str, Any]]:
    """Measure the pages with the most formulas, and the largest."""
    pages = [path.relative_to(site).as_posix() for path in (site / "book").rglob("*.html")]
    formulas = {page: (site / page).read_text("utf-8").count('class="katex"') for page in pages}
    sizes = {page: (site / page).stat().st_size for page in pages}
    pages = [page for page in pages if formulas[page]]
    chosen = [page for of in (formulas, sizes) for page in sorted(pages, key=of.get)[-count:][::-1]]
    rows = []
    with sync_playwright() as playwright, serve(site) as root:
        given = os.environ.get("ATTSVM_CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=given, args=["--no-sandbox"])
        for page in dict.fromkeys(chosen):
            loaded = weigh(browser, site, root, page)
            rest = [size for name, size in loaded.items() if "/katex/" not in name]
            seen, settled = readable(browser, root, page)
            total = {kind: sum(size[kind] for size in rest) for kind in ("raw", "sent")}
            row = {"page": page, "formulas": formulas[page], "seen": seen, "settled": settled}
            rows.append(row | total | {"resources": loaded})
        browser.close()
    return rows


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--site", type=Path, default=Path("_build/html"))
    parser.add_argument("--pages", type=int, default=8, help="how many of each kind")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--resources", action="store_true", help="list what each page loads")
    options = parser.parse_args()
    rows = measure(options.site, options.pages)
    whole = sum(path.stat().st_size for path in options.site.rglob("*") if path.is_file())
    print(f"whole site: {whole / 1e6:.1f} MB")
    print(f"{'page':50} {'formulas':>8} {'kB':>6} {'kB sent':>8} {'seen, ms':>9} {'settled':>8}")
    for row in rows:
        numbers = f"{row['raw'] / 1e3:6.0f} {row['sent'] / 1e3:8.0f} {row['seen']:9.0f}"
        numbers += f" {row['settled']:8.0f}"
        print(f"{row['page'][5:55]:50} {row['formulas']:8d} {numbers}")
        if options.resources:
            for name, size in sorted(row["resources"].items(), key=lambda item: -item[1]["raw"]):
                print(f"    {size['raw']:8d} {size['sent']:8d} {name}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
