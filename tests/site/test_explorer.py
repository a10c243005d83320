"""The explorer: its numbers are those of the package, and everyone can operate it."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import open_page, visitor
from playwright.sync_api import Browser, Page

from attsvm import descent, selection, svm
from attsvm.heads import LinearHead
from attsvm.problem import AttentionProblem

PAGE = "book/play.html"
VISIT = itertools.count()
STEPS = 200
TOLERANCE = 1e-6
SOLVE = """(cases) => cases.map(({ tokens, queries, chosen }) => ["fro", "nuc"].map(
    (norm) => attsvmExplorer.solve(tokens, queries, chosen, norm)))"""
# The whole run; and one step from each of the package's own weights.
DESCEND = """([cases, steps]) => cases.map(({ tokens, queries, scores, starts }) =>
    starts.map((start) =>
        new attsvmExplorer.Run({ tokens, queries, scores }, start).advance(steps).weights))"""
ONE_STEP = """(cases) => cases.map(({ tokens, queries, scores, along }) => along.map((states) =>
    states.map((state) => {
        const run = new attsvmExplorer.Run({ tokens, queries, scores }, state).advance(1);
        return run.K ? [run.K, run.Q] : [run.W];
    })))"""
PRESETS = """() => Object.keys(attsvmExplorer.PRESETS).map((key) => {
    const state = attsvmExplorer.preset(key);
    const solved = attsvmExplorer.solved(state);
    const starts = ["W", "KQ"].map((weights) => {
        const chosen = { ...state, weights };
        const { W, K, Q } = attsvmExplorer.run(chosen, attsvmExplorer.solved(chosen));
        return K ? { K, Q } : { W };
    });
    return { key, tokens: state.tokens, queries: state.queries, v: state.v, by: state.by,
        chosen: solved.chosen, scores: solved.gamma, starts };
})"""


@pytest.fixture(scope="module")
def explorer(browser: Browser, site: Path) -> Iterator[Page]:
    """The page, at its first view; nothing may go wrong on it during the whole module."""
    with visitor(browser, site.as_uri(), 1400, "light") as (page, problems):
        open_page(page, f"{site.as_uri()}/{PAGE}")
        yield page
        assert not problems


def _random_cases() -> list[dict[str, Any]]:
    """Fifty instances.

    Every other one selects any token; of those every other one a token among the others, which
    nothing separates.
    """
    cases = []
    for seed in range(50):
        rng = np.random.default_rng([11, seed])
        tokens = [rng.uniform(-1.5, 1.5, (size, 2)) for size in rng.integers(3, 6, 2)]
        v = rng.normal(size=2)
        if seed % 4 == 0:
            tokens[0][0] = tokens[0][1:].mean(0)
        scores = [x @ v for x in tokens]
        best = [int(g.argmax()) for g in scores]
        chosen = best if seed % 2 else [int(rng.integers(len(x))) for x in tokens]
        if seed % 4 == 0:
            chosen[0] = 0
        W, K, Q = rng.uniform(-0.7, 0.7, (3, 2, 2))
        cases.append(
            {
                "tokens": [x.tolist() for x in tokens],
                "queries": rng.uniform(-1, 1, (2, 2)).tolist(),
                "v": v.tolist(),
                "by": "v",
                "chosen": chosen,
                "scores": [g.tolist() for g in scores],
                "starts": [{"W": W.tolist()}, {"K": K.tolist(), "Q": Q.tolist()}],
            }
        )
    return cases


@pytest.fixture(scope="module")
def cases(explorer: Page) -> list[dict[str, Any]]:
    """The presets and fifty random instances."""
    return explorer.evaluate(PRESETS) + _random_cases()


def _padded(tokens: list[list[list[float]]]) -> tuple[np.ndarray, np.ndarray]:
    """Sequences of different length as one array, and the mask of what exists."""
    longest = max(map(len, tokens))
    X = np.array([[*x, *([[0.0, 0.0]] * (longest - len(x)))] for x in tokens])
    return X, np.array([[t < len(x) for t in range(longest)] for x in tokens])


def _problem(case: dict[str, Any]) -> AttentionProblem:
    """The case for the package, scored by its v."""
    X, mask = _padded(case["tokens"])
    head = LinearHead(np.array(case["v"]))
    return AttentionProblem(X, np.array(case["queries"]), np.ones(2), head, mask)


def _start(start: dict[str, Any]) -> Any:
    if "W" in start:
        return np.array(start["W"])
    return np.array(start["K"]), np.array(start["Q"])


def test_solutions_are_those_of_the_package(explorer: Page, cases: list[dict[str, Any]]) -> None:
    """Same verdict, objective and matrix in both norms; certificates prove what they say."""
    infeasible = 0
    for case, answers in zip(cases, explorer.evaluate(SOLVE, cases), strict=True):
        X, mask = _padded(case["tokens"])
        Z = np.array(case["queries"])
        for norm, answer in zip(("fro", "nuc"), answers, strict=True):
            expected = svm.solve(X, Z, case["chosen"], norm, mask, on_infeasible="return")
            assert answer["status"] == expected.status.value, case
            if expected.status is svm.Status.INFEASIBLE:
                infeasible += 1
                proof = np.zeros(mask.shape)
                for i, row in enumerate(answer["certificate"]):
                    proof[i, : len(row)] = row
                D = X[[0, 1], case["chosen"]][:, None] - X
                total = np.einsum("nt,ntd,ne->de", proof, D, Z)
                assert (proof >= 0).all()
                assert proof.sum() > 0.1
                assert np.abs(total).max() < 1e-9
            else:
                scale = max(1.0, expected.objective)
                assert abs(answer["objective"] - expected.objective) < TOLERANCE * scale
                assert 0 <= answer["gap"] + 1e-12 < TOLERANCE
                if norm == "fro" or expected.face().dimension == 0:
                    assert np.abs(np.array(answer["W"]) - expected.W).max() < TOLERANCE * scale
                support = expected.support()
                for i, row in enumerate(answer["support"]):
                    assert row == support[i, : len(row)].tolist()
    assert infeasible >= 2 * 13


def _trained(case: dict[str, Any], start: Any, **options: Any) -> descent.Trajectory:
    kind = "KQ" if isinstance(start, tuple) else "W"
    return descent.train(
        _problem(case), kind, iterations=STEPS, initial=start, ridge=0.0, **options
    )


def test_descent_is_that_of_the_package(explorer: Page, cases: list[dict[str, Any]]) -> None:
    """Two hundred steps, one by one and in a row.

    Steps of fixed length zigzag, and in some instances that amplifies the last digit of the start
    until nothing is left of it.  There a run has no digits to compare, in the package either; its
    single steps have, and they are compared for all.
    """
    ours = [case for case in cases if case["by"] == "v"]
    runs = explorer.evaluate(DESCEND, [ours, STEPS])
    compared = 0
    for case, found in zip(ours, runs, strict=True):
        case["along"] = []
        after = []
        for start, weights in zip(map(_start, case["starts"]), found, strict=True):
            arrays = ("K", "Q") if isinstance(start, tuple) else ("W",)
            expected = _trained(case, start, record=descent.every(1), keep=("W", *arrays[-2:]))
            kept = [getattr(expected, name) for name in arrays]
            case["along"].append(
                [
                    {name: a[k].tolist() for name, a in zip(arrays, kept, strict=True)}
                    for k in range(STEPS)
                ]
            )
            after.append(np.stack(kept, 1)[1:])
            shaken = tuple(a * (1 + 1e-14) for a in start) if len(arrays) > 1 else start + 1e-14
            other = _trained(case, shaken).W[-1]
            if np.abs(other - expected.W[-1]).max() < 1e-10:
                compared += 1
                assert np.abs(np.array(weights) - expected.W).max() < TOLERANCE, case
        stepped = explorer.evaluate(ONE_STEP, [case])[0]
        for found_after, expected_after in zip(stepped, after, strict=True):
            assert np.abs(np.array(found_after) - expected_after).max() < TOLERANCE, case
    assert compared > len(ours)


def test_presets_are_the_published_instances(cases: list[dict[str, Any]]) -> None:
    """Digit for digit; and descent in the package ends where the presets say."""
    presets = {case["key"]: case for case in cases if "key" in case}
    folder = Path(svm.__file__).parents[1] / "published"
    published = json.loads((folder / "trajectories.json").read_text("utf-8"))
    for key in ("a1", "a2"):
        source = published[key.upper()]
        assert presets[key]["tokens"] == source["X"]
        assert presets[key]["queries"] == source["Z"]
        assert presets[key]["v"] == source["v"]
        assert presets[key]["chosen"] == source["optimal"]
    trap = presets["trap"]
    best = [int(np.argmax(row)) for row in trap["scores"]]
    assert best != trap["chosen"]
    for start in map(_start, trap["starts"]):
        kind = "KQ" if isinstance(start, tuple) else "W"
        run = descent.train(_problem(trap), kind, iterations=1000, initial=start, ridge=0.0)
        assert selection.selected_tokens(run.attention[-1]).tolist() == trap["chosen"]
    free = descent.train(_problem(trap), "W", iterations=1000)
    assert selection.selected_tokens(free.attention[-1]).tolist() == best


def test_picked_scores_need_no_head(explorer: Page, cases: list[dict[str, Any]]) -> None:
    """With score 1 for the picked token and 0 for the rest, a step is the gradient of that loss."""
    from attsvm.descent._arithmetic import exact
    from attsvm.descent._layer import Layer

    torch = pytest.importorskip("torch")
    for case in cases[:8]:
        picked = [[float(t == a) for t in range(len(x))] for x, a in _sequences(case)]
        start = {"W": [[0.3, -0.2], [0.1, 0.4]]}
        given = [{**case, "scores": picked, "along": [[start]]}]
        found = np.array(explorer.evaluate(ONE_STEP, given)[0][0][0][0])
        X, mask = _padded(case["tokens"])
        scores = np.array([[*row, *([0.0] * (mask.shape[1] - len(row)))] for row in picked])
        layer = Layer(
            tokens=torch.tensor(X),
            queries=torch.tensor(case["queries"])[None].double(),
            labels=torch.ones(1, 2, dtype=torch.float64),
            head=None,
            absent=torch.tensor(~mask)[None],
            scores=torch.tensor(scores)[None],
            ties=True,
        )
        W = np.array(start["W"])
        Z = np.array(case["queries"])
        logits = np.where(mask, np.einsum("ntd,de,ne->nt", X, W, Z), -np.inf)
        p = exact(layer, torch.tensor(logits)[None]).p[0].numpy()
        gradient = np.einsum("nt,ntd,ne->de", p, X, Z)
        expected = W - 0.1 * gradient / np.linalg.norm(gradient)
        assert np.abs(found - expected).max() < 1e-9


def _sequences(case: dict[str, Any]) -> list[tuple[Any, int]]:
    return list(zip(case["tokens"], case["chosen"], strict=True))


def _fresh(page: Page, site: Path, state: str = "") -> None:
    """The page as someone finds it who follows a link."""
    # With another query, since a new hash alone is only a jump within the page.
    open_page(page, f"{site.as_uri()}/{PAGE}?{next(VISIT)}{state}")


def _state(page: Page) -> dict[str, Any]:
    return page.evaluate("JSON.parse(JSON.stringify(attsvmExplorer.app.state))")


def test_keyboard_moves_and_selects(explorer: Page, site: Path) -> None:
    """Arrows move the token in focus and the solution with it; Enter selects; focus is kept."""
    _fresh(explorer, site)
    token = explorer.get_by_role("button", name="Token 3 of sequence 1")
    before = explorer.evaluate("attsvmExplorer.app.solved.fro.W")
    token.focus()
    explorer.keyboard.press("ArrowRight")
    explorer.keyboard.press("Shift+ArrowUp")
    assert _state(explorer)["tokens"][0][2] == pytest.approx([-0.6977, 0.3156], abs=1e-9)
    assert explorer.evaluate("attsvmExplorer.app.solved.fro.W") != before
    assert "at −0.70, 0.32" in (token.get_attribute("aria-label") or "")
    explorer.keyboard.press("Enter")
    assert _state(explorer)["chosen"] == [2, 0]
    assert token.get_attribute("aria-pressed") == "true"
    assert explorer.evaluate("document.activeElement.dataset.handle") == "x.0.2"
    ring = explorer.evaluate("getComputedStyle(document.activeElement.children[0]).strokeWidth")
    assert float(ring.removesuffix("px")) >= 2
    explorer.wait_for_function(
        "document.querySelector('[data-part=live]').textContent.includes('token 3 of sequence 1')"
    )


@pytest.mark.parametrize("finger", [False, True])
def test_dragging_solves_anew(explorer: Page, site: Path, finger: bool) -> None:
    """A token follows the pointer, whatever kind it is; a tap selects."""
    _fresh(explorer, site, "#preset=trap")
    token = explorer.locator('[data-handle="x.0.1"]')
    box = token.locator(".touch").bounding_box()
    assert box is not None
    assert min(box["width"], box["height"]) >= 24
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    kind = {"pointerId": 1, "pointerType": "touch", "isPrimary": True, "bubbles": True}
    if finger:
        explorer.evaluate("SVGElement.prototype.setPointerCapture = () => {}")
        for event, dx in (("pointerdown", 0), ("pointermove", 60), ("pointerup", 60)):
            token.locator(".touch").dispatch_event(
                event, {**kind, "clientX": x + dx, "clientY": y, "button": 0}
            )
    else:
        explorer.mouse.move(x, y)
        explorer.mouse.down()
        explorer.mouse.move(x + 30, y)
        explorer.mouse.move(x + 60, y)
        explorer.mouse.up()
    moved = _state(explorer)["tokens"][0][1]
    assert moved[0] > -0.57 + 0.2
    assert moved[1] == pytest.approx(0.59, abs=0.02)
    assert _state(explorer)["chosen"] == [2, 3]
    explorer.get_by_role("radio", name="1").first.check()
    assert _state(explorer)["chosen"] == [0, 3]


def test_the_address_holds_the_state(explorer: Page, site: Path) -> None:
    """What is set comes back from the address; what is no state is refused in words."""
    _fresh(explorer, site, "#preset=a2&weights=KQ&k=40")
    explorer.get_by_role("button", name="Token 1 of sequence 2").focus()
    explorer.keyboard.press("ArrowDown")
    explorer.get_by_role("button", name="1 step", exact=True).click()
    before = _state(explorer)
    assert before["k"] == 41
    explorer.wait_for_function("location.hash.includes('k=41')")
    address = explorer.evaluate("location.hash")
    _fresh(explorer, site, address)
    assert _state(explorer) == before
    for wrong, words in (
        ("#preset=b7", "preset should be one of"),
        ("#x=1,2;3,4&z=1,0;0,1", "two sequences"),
        ("#x=1,1;0,1;9e9,1/0,0;1,0;0,1&z=1,0;0,1&v=1,0", "from -2.4 to 2.4"),
        ("#preset=a1&k=-3", "k should be a number"),
        ("#%E0%A4%A", "not encoded"),
        ("#x=<b>", "x should be two sequences"),
    ):
        _fresh(explorer, site, wrong)
        verdict = explorer.locator("[data-part=verdict]").inner_text()
        assert words in verdict, (wrong, verdict)
        assert _state(explorer)["preset"] == "a1"


def test_infeasible_is_said_and_proved(explorer: Page, site: Path) -> None:
    """The page says that nothing separates, and marks the tokens that prove it."""
    _fresh(explorer, site, "#preset=none&k=20")
    assert "No separating W exists" in explorer.locator("[data-part=verdict]").inner_text()
    proof = explorer.get_by_role("button", name=re.compile("part of the proof"))
    assert proof.count() == 3
    assert explorer.locator(".proof-hull").count() == 1
    # Drag the token out of the triangle, and there is a solution.
    explorer.get_by_role("button", name="Token 1 of sequence 1").focus()
    for _ in range(12):
        explorer.keyboard.press("ArrowUp")
    assert "The SVM selects" in explorer.locator("[data-part=verdict]").inner_text()
    assert proof.count() == 0


def test_motion_only_where_it_is_welcome(explorer: Page, site: Path) -> None:
    """Reduced motion: no play button, steps by hand.  Else play runs, and pauses."""
    _fresh(explorer, site, "#preset=a1")
    play = explorer.locator("[data-action=play]")
    assert play.is_hidden()
    explorer.get_by_role("button", name="100 steps").click()
    explorer.wait_for_function("attsvmExplorer.app.run.weights.length > 100")
    assert _state(explorer)["k"] == 100
    explorer.emulate_media(reduced_motion="no-preference")
    play.wait_for(state="visible")
    play.click()
    explorer.wait_for_function("attsvmExplorer.app.state.k > 105")
    play.click()
    stopped = _state(explorer)["k"]
    explorer.wait_for_timeout(300)
    assert _state(explorer)["k"] == stopped
    explorer.emulate_media(reduced_motion="reduce")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_drawn_is_seen(explorer: Page, site: Path, theme: str) -> None:
    """Each sequence has its colour; rays, margins, paths and curves are drawn, not filled."""
    open_page(explorer, f"{site.as_uri()}/{PAGE}?{next(VISIT)}")
    explorer.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
    explorer.get_by_role("button", name="100 steps").click()
    colours = explorer.evaluate(
        """() => [1, 2].map((i) => getComputedStyle(
            document.querySelector(`.explorer .sequence-${i} .mark`)).fill)"""
    )
    assert len({*colours, "rgb(0, 0, 0)", "none"}) == 4
    undrawn = explorer.evaluate(
        """() => [...document.querySelectorAll(
            ".explorer svg :is(.path, .ray, .other-ray, .band, .curve)")]
            .filter((one) => ["none", ""].includes(getComputedStyle(one).stroke)
                || !["none", "rgba(0, 0, 0, 0)"].includes(getComputedStyle(one).fill)
                && one.tagName === "polyline")
            .map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert not undrawn
    assert explorer.locator(".explorer .path").count() >= 2


@pytest.mark.parametrize("preset", ["a1", "none"])
def test_fits_a_phone(browser: Browser, site: Path, preset: str) -> None:
    """No horizontal scrolling at 390 px, and the handles are large enough for a finger."""
    with visitor(browser, site.as_uri(), 390, "dark") as (page, problems):
        open_page(page, f"{site.as_uri()}/{PAGE}#preset={preset}&k=60")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        box = page.locator('[data-handle="x.0.0"] .touch').bounding_box()
        assert box is not None
        assert box["width"] >= 24
        actions = page.evaluate("getComputedStyle(document.querySelector('.handle')).touchAction")
        assert actions == "none"
    assert not problems


def test_a_still_figure_without_scripts(browser: Browser, site: Path) -> None:
    """Without JavaScript there is a picture, and the page says why."""
    with visitor(browser, site.as_uri(), 1400, "light", scripts=False) as (page, _):
        page.goto(f"{site.as_uri()}/{PAGE}")
        place = page.locator(".explorer")
        assert "needs JavaScript" in place.inner_text()
        assert place.locator("img.figure-image").first.is_visible()
        assert place.locator("select").count() == 0


def test_scripts_are_small_and_only_here(site: Path, pages: list[str]) -> None:
    """At most 60 kB, and no other page loads them."""
    scripts = list((site / "_static" / "explorer").glob("*.js"))
    assert len(scripts) >= 3
    assert sum(path.stat().st_size for path in scripts) <= 60_000
    with_it = [name for name in pages if "explorer/solver.js" in (site / name).read_text("utf-8")]
    assert with_it == [PAGE]
