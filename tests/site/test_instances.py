"""Single instances behind a figure: loaded when asked for, true to the data, usable with keys."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from browsing import Server, open_page, visitor
from playwright.sync_api import Browser, Page

CALL = re.compile(r'attsvmInstances\("(?P<name>[a-z0-9-]+)",(?P<content>.*)\);\n', re.DOTALL)
WITH_INSTANCES = {"local-convergence", "saturation", "sequences", "quadratic-head", "flow"}
CHAPTER = "book/05-local-convergence/local-convergence.html"


def read(path: Path) -> tuple[str, dict[str, Any]]:
    match = CALL.fullmatch(path.read_text(encoding="utf-8"))
    assert match, path.name
    return match["name"], json.loads(match["content"])


def decoded(coded: list[int | None], quantity: dict[str, Any]) -> np.ndarray:
    whole = np.cumsum([0 if c is None else c for c in coded]).astype(np.float64)
    whole[[c is None for c in coded]] = np.nan
    values = whole * quantity["unit"]
    return 10.0**values if quantity["log"] else values


@pytest.fixture(scope="module")
def content(site: Path) -> dict[str, Any]:
    folder = site / "_static" / "results" / "figures"
    return read(folder / "local-convergence.data.js")[1]


def test_data_are_small_and_whole(site: Path) -> None:
    """Every file is one call, at most 60 kB, and every row of it is as long as it says."""
    files = sorted((site / "_static" / "results" / "figures").glob("*.data.js"))
    assert {path.name.removesuffix(".data.js") for path in files} == WITH_INSTANCES
    for path in files:
        assert path.stat().st_size <= 60_000, path.name
        name, content = read(path)
        assert path.name == f"{name}.data.js"
        places = len(content["x"]["values"])
        assert places > 2 and len(content["seeds"]) > 2
        for curve in content["curves"]:
            for quantity in content["quantities"]:
                rows = curve["values"][quantity["name"]]
                assert len(rows) == len(content["seeds"])
                assert all(row is None or len(row) == places for row in rows)


@pytest.mark.parametrize("gradient", ["exact", "published"])
def test_means_are_those_of_the_figure(site: Path, content: dict[str, Any], gradient: str) -> None:
    """The mean of the view is the mean that the figure's own data have."""
    table = pd.read_csv(site / "_static/results/figures/local-convergence.csv")
    for weights in ("W", "KQ"):
        run = f"{weights}, {gradient}"
        curve = next(one for one in content["curves"] if one["name"] == run)
        for quantity in content["quantities"]:
            rows = table[(table["run"] == run) & (table["quantity"] == quantity["name"])]
            drawn = rows.set_index("iteration").loc[content["x"]["values"], "mean"]
            np.testing.assert_allclose(
                decoded(curve["mean"][quantity["name"]], quantity),
                drawn,
                atol=0.51 * quantity["unit"],
            )


def values(page: Page) -> list[list[str]]:
    """Instance and mean of each curve, as the table says them."""
    rows = page.locator(".instances-values tbody tr")
    cells = [row.locator("td").all_inner_texts()[:2] for row in rows.all()]
    return cells


def expected(content: dict[str, Any], seed: int, place: int, name: str) -> list[list[str]]:
    quantity = next(q for q in content["quantities"] if q["name"] == name)
    row = content["seeds"].index(seed)
    numbers = [
        [
            decoded(c["values"][name][row], quantity)[place],
            decoded(c["mean"][name], quantity)[place],
        ]
        for c in content["curves"]
    ]
    return [[f"{n:.4f}".replace("-", "−") for n in pair] for pair in numbers]


@pytest.mark.parametrize("origin", ["disk", "server"])
def test_opened_it_shows_what_the_data_say(
    browser: Browser, site: Path, server: Server, content: dict[str, Any], origin: str
) -> None:
    """Nothing is loaded before; then numbers follow instance, quantity and place, by keys."""
    root = site.as_uri() if origin == "disk" else server.address
    with visitor(browser, root, 1400, "light") as (page, problems):
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        open_page(page, f"{root}/{CHAPTER}")
        assert not [address for address in asked if address.endswith(".data.js")]
        page.locator("details.instances > summary").focus()
        page.keyboard.press("Enter")
        page.locator(".instances-values tbody tr").first.wait_for()
        assert len([address for address in asked if address.endswith(".data.js")]) == 1
        last = len(content["x"]["values"]) - 1
        assert values(page) == expected(content, 0, last, "frobenius")
        assert page.locator(".instances-plot .own").count() == len(content["curves"])

        number = page.get_by_label("Instance (seed)")
        number.focus()
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowUp")
        assert values(page) == expected(content, 2, last, "frobenius")
        number.fill("5")
        assert values(page) == expected(content, 5, last, "frobenius")
        number.fill("4711")
        page.keyboard.press("Enter")
        highest = content["seeds"][-1]
        assert number.input_value() == str(highest)
        assert values(page) == expected(content, highest, last, "frobenius")

        slider = page.get_by_label("Iteration", exact=True)
        slider.focus()
        for _ in range(3):
            page.keyboard.press("ArrowLeft")
        assert values(page) == expected(content, highest, last - 3, "frobenius")
        spoken = str(slider.get_attribute("aria-valuetext"))
        assert spoken.startswith(f"Iteration {content['x']['values'][last - 3]:g}. W, published: ")
        page.get_by_label("Drawn", exact=True).select_option("nuclear")
        assert values(page) == expected(content, highest, last - 3, "nuclear")
    assert not problems


def test_the_mouse_reads_values_and_curves_can_be_left_out(
    browser: Browser, site: Path, content: dict[str, Any]
) -> None:
    with visitor(browser, site.as_uri(), 1400, "dark") as (page, problems):
        open_page(page, f"{site.as_uri()}/{CHAPTER}")
        page.locator("details.instances > summary").click()
        # The drawing is made anew when its box gets its size; the box itself stays.
        page.locator(".instances-plot").scroll_into_view_if_needed()
        page.locator(".instances-plot .own").first.wait_for(state="attached")
        box = page.locator(".instances-plot svg").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 57, box["y"] + 60)
        assert values(page) == expected(content, 0, 0, "frobenius")
        before = page.locator(".instances-plot path").count()
        page.get_by_label("W, published").uncheck()
        assert page.locator(".instances-plot path").count() == before - 4
        assert page.locator(".instances-values tbody tr").count() == len(content["curves"])
    assert not problems


@pytest.mark.parametrize(
    "chapter",
    [
        "appendix-float64/saturation",
        "06-nonlinear-heads/quadratic-head",
        "07-sequences/sequences",
        "08-related-work/flow",
    ],
)
def test_narrow_pages_hold_it(browser: Browser, site: Path, chapter: str) -> None:
    """On a phone: drawn, and nothing spills."""
    with visitor(browser, site.as_uri(), 390, "light") as (page, problems):
        open_page(page, f"{site.as_uri()}/book/{chapter}.html")
        page.locator("details.instances > summary").click()
        page.locator(".instances-plot .own").first.wait_for(state="attached")
        for option in page.get_by_label("Drawn", exact=True).locator("option").all():
            page.get_by_label("Drawn", exact=True).select_option(option.get_attribute("value"))
            assert "NaN" not in page.locator(".instances-plot").inner_html()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not problems


def test_without_scripts_it_says_why(browser: Browser, site: Path) -> None:
    with visitor(browser, site.as_uri(), 1400, "light", scripts=False) as (page, problems):
        page.goto(f"{site.as_uri()}/{CHAPTER}")
        page.locator("details.instances > summary").click()
        assert "does not run here" in page.locator(".instances-still").inner_text()
    assert not problems
