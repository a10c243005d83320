"""The end of the build: one style sheet, scripts that wait, drawings in fewer bytes."""

from __future__ import annotations

import doctest
import importlib
import io
import itertools
import json
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import matplotlib as mpl
import numpy as np
import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from PIL import Image, ImageChops
from playwright.sync_api import Browser
from smallbook import REPOSITORY

from companion.site import bundle, drawings, lean

PAGE = """<html><head>
<link rel="stylesheet" href="{root}_static/theme/base.css?v=1">
<link href="{root}_static/own.css" rel="stylesheet" type="text/css" />
<link rel="icon" href="{root}_static/x.svg">
<script src="{root}_static/documentation_options.js?v=1"></script>
<script src="{root}_static/one.js"></script>
<script async src="{root}_static/two.js"></script>
<script>OPTIONS.page = "here";</script></head>
<body class="used"><script>
document.write(`
  <button class="used big">Search</button>
`);
</script></body></html>"""


@pytest.mark.parametrize("name", ["bundle", "drawings", "lean", "text"])
def test_examples_in_docstrings(name: str) -> None:
    """They say what happens."""
    done = doctest.testmod(importlib.import_module(f"companion.site.{name}"))
    assert done.attempted
    assert not done.failed


@given(st.permutations("abcdef"), st.lists(st.sets(st.sampled_from("abcdef")), max_size=6))
def test_the_order_agrees_with_every_page(order: list[str], pages: list[set[str]]) -> None:
    """Pages that name parts of one order get them in that order, each sheet once."""
    heads = [[name for name in order if name in page] for page in pages]
    found = bundle.ordered(heads)
    assert sorted(found) == sorted(set().union(*pages)) if pages else not found
    for head in heads:
        for first, second in itertools.pairwise(head):
            assert found.index(first) < found.index(second)


def test_orders_that_contradict() -> None:
    """There is no way to please both pages."""
    with pytest.raises(ValueError, match="cycle"):
        bundle.ordered([["a", "b"], ["b", "a"]])


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A site of two pages in two folders, with imports and a font."""
    static = tmp_path / "_static"
    (static / "theme" / "fonts").mkdir(parents=True)
    (static / "basic.css").write_text("/* aside */ .used { top: 0 } .never { top: 1px }")
    (static / "theme" / "base.css").write_text(
        '@import "../basic.css";\n@font-face { src: url(fonts/a.woff2) }'
    )
    (static / "own.css").write_text('.used, .never { background: url("data:image/svg+xml,x") }')
    (static / "documentation_options.js").write_text("const OPTIONS = {\n  a: '',\n};")
    (tmp_path / "index.html").write_text(PAGE.format(root=""))
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "page.html").write_text(PAGE.format(root="../"))
    return tmp_path


def test_one_style_sheet(small: Path) -> None:
    """Imports in their place, addresses from the new place, rules that match nothing left out."""
    names = ["index.html", "book/page.html"]
    pages = {name: (small / name).read_text() for name in names}
    bundle.bundle(small, pages, lambda _, sheet: lean.purge(sheet, {"used", "big"}))
    sheet = (small / "_static" / bundle.SHEET).read_text()
    assert sheet == (
        '.used{top: 0}@font-face { src: url("theme/fonts/a.woff2") }\n'
        '.used{background: url("data:image/svg+xml,x")}'
    )
    for name, root in zip(names, ("_static", "../_static"), strict=True):
        soup = BeautifulSoup(pages[name], "html.parser")
        (link,) = soup.select("link[rel=stylesheet]")
        assert re.fullmatch(rf"{root}/site\.css\?v=[0-9a-f]{{8}}", str(link["href"]))
        assert soup.select_one("link[rel=icon]")


def test_scripts_wait(small: Path) -> None:
    """In their order; constants stay in the page, and what scripts would write is there."""
    pages = {"index.html": (small / "index.html").read_text()}
    bundle.bundle(small, pages, lambda _, sheet: sheet)
    soup = BeautifulSoup(pages["index.html"], "html.parser")
    scripts = soup.select("script")
    assert scripts[0].string == "const OPTIONS = { a: '', };"
    assert [one.get("src") for one in scripts[1:3]] == ["_static/one.js", "_static/two.js"]
    assert [one.has_attr("defer") for one in scripts[1:3]] == [True, False]
    button = soup.select_one("body button")
    assert button is not None
    assert button["class"] == ["needs-script", "used", "big"]
    assert "document.write" not in pages["index.html"]


def test_addresses_in_the_style_sheet(site: Path) -> None:
    """Every font and picture of the site's style sheet is there, and no import is left."""
    sheet = site / "_static" / bundle.SHEET
    text = sheet.read_text("utf-8")
    addresses = {match[2] for match in bundle.ADDRESS.finditer(text)}
    assert len(addresses) > 10
    for address in addresses:
        assert (sheet.parent / unquote(urlsplit(address).path)).is_file(), address
    assert "@import" not in text


def test_code_stays_what_it_was(site: Path) -> None:
    """Marks without a colour are gone, the characters are those of the notebook."""
    name = "03-implicit-bias/regularization-path"
    page = BeautifulSoup((site / f"book/{name}.html").read_text("utf-8"), "html.parser")
    assert not page.select("pre span.n, pre span.p, pre span.o")
    assert page.select("pre span.k, pre span.kn")
    shown = [block.get_text().strip() for block in page.select(".cell_input pre")]
    cells = json.loads((REPOSITORY / f"book/{name}.ipynb").read_text("utf-8"))["cells"]
    sources = ["".join(cell["source"]).strip() for cell in cells if cell["cell_type"] == "code"]
    # The cell of parameters shows the values of the profile, and the one for Colab is left out.
    assert sum(source in shown for source in sources) >= len(sources) - 2


@pytest.mark.parametrize("folder", ["css", "explorer"])
def test_our_own_rules_are_all_there(site: Path, folder: str) -> None:
    """Scripts put names of classes together; a rule that looks unused may draw the explorer."""
    whole = (site / "_static" / bundle.SHEET).read_text("utf-8")
    sheets = sorted((REPOSITORY / "book" / "_static" / folder).glob("*.css"))
    assert sheets
    for sheet in sheets:
        kept = lean.purge(sheet.read_text("utf-8"), None)
        assert bundle.moved(kept, folder) in whole or sheet.name == "paper.css", sheet.name


def test_pages_wait_for_nothing(site: Path, pages: list[str]) -> None:
    """One style sheet, and no script that stops the reading of a page."""
    for name in pages:
        soup = BeautifulSoup((site / name).read_text("utf-8"), "html.parser")
        if not soup.select_one("article") or name == "search.html":
            continue
        assert len(soup.select("link[rel=stylesheet]")) == 1, name
        for script in soup.select("script[src]"):
            assert script.has_attr("defer") or script.has_attr("async"), (name, script["src"])


def test_buttons_that_need_scripts(browser: Browser, site: Path) -> None:
    """They are there where scripts run, and not where they do not."""
    for scripts in (True, False):
        context = browser.new_context(
            viewport={"width": 1400, "height": 900}, java_script_enabled=scripts
        )
        page = context.new_page()
        page.goto(f"{site.as_uri()}/book/intro.html")
        buttons = page.locator("button.needs-script")
        assert buttons.count() == 3
        for one in buttons.all():
            assert not (one.is_visible() and not scripts)
        assert any(one.is_visible() for one in buttons.all()) == scripts
        context.close()


def _drawing() -> bytes:
    """A figure with what the book's figures have: scatter, lines, text, a raster, clipping."""
    rng = np.random.default_rng(0)
    figure = Figure(figsize=(6, 2.4))
    left, middle, right = figure.subplots(1, 3)
    left.scatter(*rng.normal(size=(2, 200)), c=rng.uniform(size=200), alpha=0.5)
    left.plot([-9, 9], [-9, 9], ls="--")
    left.set(xlim=(-2, 2), ylim=(-2, 2), title=r"Angle $\theta$")
    middle.loglog([1, 10, 100], [1, 0.1, 0.02], marker="x")
    middle.fill_between([1, 100], [0.01, 0.01], [0.1, 0.2], hatch="//", alpha=0.3)
    right.imshow(rng.uniform(size=(4, 5)), aspect="auto")
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "x", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def _painted(browser: Browser, drawing: bytes) -> Image.Image:
    page = browser.new_page(viewport={"width": 700, "height": 300}, device_scale_factor=2)
    page.set_content("<style>* { margin: 0 }</style>" + drawing.decode().partition("?>")[2])
    shot = page.locator("svg").first.screenshot()
    page.close()
    return Image.open(io.BytesIO(shot)).convert("L")


def test_a_drawing_stays_the_same_picture(browser: Browser) -> None:
    """In fewer bytes; doing it again changes nothing that is seen."""
    before = _drawing()
    after = drawings.slimmed(before)
    again = drawings.slimmed(after)
    assert len(after) < 0.9 * len(before)
    assert again == after
    expected = _painted(browser, before)
    assert np.asarray(expected).std() > 10
    seen = _painted(browser, after)
    assert seen.size == expected.size
    difference = np.asarray(ImageChops.difference(seen, expected), dtype=float)
    # Edges move by less than a hundredth of a point; the browser samples them in quarters.
    assert difference.max() <= 80
    assert (difference > 16).mean() < 1e-3
