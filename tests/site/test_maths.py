"""Formulas are drawn while a page is built: for the eye, for the ear, and never half."""

from __future__ import annotations

import re

import pytest
from bs4 import BeautifulSoup, Tag
from handmade import Build, claim_record, figure_record, page

KINDS = r"""# The rank of $W_{\mathrm{mm}}$

Here is $x^\top W z \ge 1$, and ($\gamma$).

$$
\max_t \|W\|_F \\ \text{subject to } a \le b
$$ (eq-named)

```{math}
:label: eq-two

a = b

c = d
```

\begin{align}
p &= q \\
r &= s
\end{align}

See {eq}`eq-named` and {eq}`eq-two`.

| symbol | size |
|---|---|
| $\lambda$ | $\mathcal{L}(W)$ |
"""


def _other(build: Build, text: str) -> tuple[BeautifulSoup, str]:
    site, warnings = build(other=text)
    return BeautifulSoup(page(site, "book/other"), "html.parser"), warnings


def _seen(formula: Tag) -> str:
    drawn = formula.select_one(".katex-html")
    assert drawn is not None
    return drawn.get_text().replace("\u200b", "")


def test_every_kind_of_formula(build: Build) -> None:
    """In a title, in text, displayed, named, aligned, in a table: each for the eye and the ear."""
    soup, warnings = _other(build, KINDS)
    assert not warnings
    article = soup.find("article")
    assert isinstance(article, Tag)
    formulas = article.select(".math")
    assert len(formulas) == 8
    for formula in formulas:
        assert len(formula.select("math")) == 1
        assert _seen(formula).strip()
        assert formula.select_one(".katex-html")["aria-hidden"] == "true"  # type: ignore[index]
    assert not soup.find_all("script", string=re.compile("MathJax"))


def test_numbers_and_references(build: Build) -> None:
    """Numbers are printed once, by Sphinx; references lead to the formula."""
    soup, _ = _other(build, KINDS)
    assert [tag.get_text()[:3] for tag in soup.select("article .eqno")] == ["(1)", "(2)", "(3)"]
    for name, number in (("eq-named", "(1)"), ("eq-two", "(2)")):
        target = soup.find(id=f"equation-{name}")
        assert isinstance(target, Tag)
        assert "math" in target["class"]
        link = soup.select_one(f"article p a[href='#equation-{name}']")
        assert link is not None
        assert link.get_text() == number
    assert "tag" not in {
        str(cls) for tag in soup.select(".katex *") for cls in tag.get("class", [])
    }


def test_titles_and_descriptions_are_plain(build: Build) -> None:
    """What holds no markup gets letters, not commands, and each once."""
    text = "Here we look at $x_i^\\top W$, which is a row, and at nothing else in particular."
    soup, _ = _other(build, f"# The rank of $W_{{\\mathrm{{mm}}}}$\n\n{text}\n")
    assert soup.title is not None
    assert soup.title.get_text().startswith("The rank of Wmm")
    description = soup.find("meta", attrs={"name": "description"})
    assert isinstance(description, Tag)
    assert "xi⊤W, which" in str(description["content"])


def test_marks_stay_with_their_formula(build: Build) -> None:
    """A comma or a bracket behind a formula stands in its last box, and is heard once."""
    soup, _ = _other(build, KINDS)
    paragraph = soup.select("article p")[0]
    first, second = paragraph.select(".math")
    for formula, mark in ((first, ","), (second, ").")):
        boxes = formula.select(".katex-html > .katex-base")
        assert boxes[-1].get_text().endswith(mark)
        assert formula.select_one(".katex-mathml").get_text().endswith(mark)  # type: ignore[union-attr]
    assert not str(first.next_sibling).startswith(",")


def test_captions_and_claims(build: Build) -> None:
    """Formulas of records, which no page holds as text, are drawn too."""
    site, warnings = build(
        figure=figure_record(
            title="A curve of $W$",
            caption=r"Direction of $W^{\mathrm{svm}}$.",
            ledger=[{"label": "$n = 5$", "drawn": 1, "fates": {"kept": 1}}],
        ),
        claim=claim_record(
            place="Section 5, $Q$",
            statement=r"The rank is at most $\min(n, d)$.",
            criterion=r"share with $\|W_\mathrm{mm}\|_F ≥ 10^{-7}$: at most 20 000",
            why="a rate of $1/R$",
            certified={"value": 3e-7, "halfwidth": 0, "n": 1},
        ),
    )
    assert not warnings
    soup = BeautifulSoup(page(site), "html.parser")
    assert "$" not in soup.select_one("article").get_text()  # type: ignore[union-attr]
    for where, seen in (
        ("figcaption strong", "W."),
        (".ledger th", "n=5"),
        (".claim-place", "Q"),
        (".claim-numbers", "3×10−7,"),
        (".claim-facts dd", "∥Wmm∥F≥10−7:"),
        (".claim-facts div + div dd", "1/R"),
        (".verdict-lines", "min(n,d)"),
    ):
        assert _seen(soup.select_one(f"{where} .math")) == seen  # type: ignore[arg-type]
    assert "20\xa0000" in soup.select_one(".claim-facts").get_text()  # type: ignore[union-attr]
    assert "Wsvm." in [_seen(formula) for formula in soup.select("figcaption .math")]
    assert "min(n,d)." in _seen(soup.select_one(".claim-statement .math"))  # type: ignore[arg-type]


def test_macros(build: Build) -> None:
    """A macro of the configuration is known in every formula."""
    site, warnings = build(
        other="# Other\n\n$\\Wmm x$\n", config={"companion_macros": {r"\Wmm": r"W_{\mathrm{mm}}"}}
    )
    assert not warnings
    assert "mm" in page(site, "book/other")


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        (r"\nosuchcommand{x}", "Undefined control sequence"),
        (r"\frac{1", "Unexpected end of input"),
        ("x_1_2", "Double subscript"),
        (r"\begin{nosuch}x\end{nosuch}", "No such environment: nosuch"),
        ("x 字 y", "字"),
    ],
)
@pytest.mark.parametrize("display", [False, True])
def test_what_cannot_be_drawn_is_named(
    build: Build, formula: str, reason: str, display: bool
) -> None:
    """A warning, which fails the book, with its place, formula and reason; the source is shown."""
    dollars = "$$" if display else "$"
    soup, warnings = _other(build, f"# Other\n\nSee\n\n{dollars}{formula}{dollars}\n")
    assert "other.md" in warnings
    assert repr(formula) in warnings
    assert reason in warnings
    assert soup.select_one(".math code").get_text() == formula  # type: ignore[union-attr]
