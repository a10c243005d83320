"""Citing, sharing, running elsewhere, and addresses that lead nowhere."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
import smallbook
import yaml
from browsing import Server, open_page, visitor
from bs4 import BeautifulSoup, Tag
from playwright.sync_api import Browser
from pybtex.database import parse_string

from companion.build.layout import Layout
from companion.ship import serve
from companion.site import citation, launch

CITATION = yaml.safe_load((smallbook.REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))


def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


# Citing


def test_bibtex_says_what_the_citation_file_says() -> None:
    """An independent parser reads the same authors, title and numbers back."""
    paper = CITATION["references"][0]
    ((key, entry),) = parse_string(citation.bibtex(paper), "bibtex").entries.items()
    assert key == "tarzanagh2023transformers"
    assert entry.type == "article"
    assert entry.fields["title"].strip("{}") == paper["title"]
    assert entry.fields["year"] == str(paper["year"])
    assert entry.fields["url"] == paper["url"]
    assert f"arXiv:{entry.fields['eprint']}" == paper["identifiers"][0]["value"]
    families = [" ".join(p.prelast_names + p.last_names) for p in entry.persons["author"]]
    assert families == [author["family-names"] for author in paper["authors"]]
    ((_, own),) = parse_string(citation.bibtex(CITATION), "bibtex").entries.items()
    assert own.fields["title"].strip("{}") == CITATION["title"]
    assert own.fields["note"] == f"Version {CITATION['version']}"
    assert [str(person) for person in own.persons["author"]] == ["{The attsvm authors}"]


def test_bibtex_protects_what_tex_would_read() -> None:
    entry = {
        "type": "book",
        "title": "50 % & more_or_less",
        "authors": [{"family-names": "Å", "given-names": "B.", "name-particle": "van"}],
        "date-released": "2031-02-03",
        "doi": "10.1/2_3",
        "repository-code": "https://example.org/a_b",
    }
    text = citation.bibtex(entry)
    assert "title         = {{50 \\% \\& more\\_or\\_less}}" in text
    assert "author        = {van Å, B.}" in text
    assert "@book{a2031more" in text
    assert "doi           = {10.1/2_3}" in text and "https://example.org/a_b" in text
    with pytest.raises(KeyError, match="authors"):
        citation.bibtex({"title": "Nobody's"})


def test_the_page_shows_both_entries(site: Path) -> None:
    shown = [pre.get_text() for pre in soup(site / "book/cite.html").select(".bibtex pre")]
    assert shown == [citation.bibtex(CITATION), citation.bibtex(CITATION["references"][0])]


def test_copying_over_http(browser: Browser, server: Server) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{server.address}/book/cite.html")
    page.get_by_role("button", name="Copy the entry of the paper").click()
    page.get_by_text("Copied.").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == citation.bibtex(CITATION["references"][0])
    context.close()


def test_copying_from_disk_selects(browser: Browser, site: Path) -> None:
    with visitor(browser, site.as_uri(), 390, "dark") as (page, problems):
        open_page(page, f"{site.as_uri()}/book/cite.html")
        page.get_by_role("button", name="Copy the entry of this companion").click()
        assert "Ctrl+C" in page.locator(".bibtex-said").first.inner_text()
        chosen = page.evaluate("getSelection().toString()").split()
        assert chosen == citation.bibtex(CITATION).split()
    assert not problems


def test_no_citation_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"cite.md": "# Cite\n\n:::{bibtex} paper\n:::\n"}
    _, warnings = smallbook.build(tmp_path, files, monkeypatch)
    assert "there is no CITATION.cff to cite from" in warnings


# Running elsewhere

LAUNCH = {"binderhub_url": "https://mybinder.org/", "colab_url": "https://colab.example"}
NOTEBOOK = "book/05-section/chapter.ipynb"


def settings(address: str, **more: Any) -> Any:
    options = {"repository_url": address, "repository_branch": "main", "launch_buttons": LAUNCH}
    return SimpleNamespace(html_theme_options=options | more)


def test_addresses_by_host() -> None:
    github = launch.links(settings("https://github.com/someone/attsvm/"), NOTEBOOK)
    assert github == {
        "Binder": f"https://mybinder.org/v2/gh/someone/attsvm/main?urlpath=lab/tree/{NOTEBOOK}",
        "Colab": f"https://colab.example/github/someone/attsvm/blob/main/{NOTEBOOK}",
        "Edit": f"https://github.com/someone/attsvm/edit/main/{NOTEBOOK}",
    }
    gitlab = launch.links(settings("https://gitlab.com/a/b", repository_branch="dev"), NOTEBOOK)
    assert gitlab == {
        "Binder": f"https://mybinder.org/v2/gl/a%2Fb/dev?urlpath=lab/tree/{NOTEBOOK}",
        "Edit": f"https://gitlab.com/a/b/edit/dev/{NOTEBOOK}",
    }
    other = launch.links(settings("https://git.example/x/y"), NOTEBOOK)
    place = "git/https%3A%2F%2Fgit.example%2Fx%2Fy"
    assert other == {"Binder": f"https://mybinder.org/v2/{place}/main?urlpath=lab/tree/{NOTEBOOK}"}
    assert launch.links(settings(""), NOTEBOOK) == {}


def chapter() -> str:
    """A notebook that was run."""
    cells = [
        nbformat.v4.new_markdown_cell("# Chapter\n\nWhat descent does to the weights, in words."),
        nbformat.v4.new_code_cell("1 + 1", execution_count=1),
    ]
    language = {"name": "python", "pygments_lexer": "python"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"language_info": language})
    return nbformat.writes(notebook)


def built(
    folder: Path, monkeypatch: pytest.MonkeyPatch, address: str, cited: str = "", **more: Any
) -> Path:
    """The site of a book with one notebook and one page."""
    section = "# Section\n\n```{toctree}\nchapter\n```\n"
    files = {NOTEBOOK: chapter(), "book/05-section/index.md": section}
    if cited:
        files["CITATION.cff"] = f"title: A\nauthors: [{{name: B}}]\nrepository-code: {cited}\n"
    options = {"launch_buttons": dict(LAUNCH)} | ({"repository_url": address} if address else {})
    site, warnings = smallbook.build(folder, files, monkeypatch, html_theme_options=options, **more)
    assert not warnings
    return site


@pytest.mark.parametrize(
    ("address", "cited", "expected"),
    [
        ("https://github.com/someone/fork", "https://github.com/else/where", "someone/fork"),
        ("", "https://github.com/else/where", "else/where"),
    ],
)
def test_one_setting_decides_all_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, cited: str, expected: str
) -> None:
    """The setting, or else the citation file; theme buttons and our own list follow it alike."""
    page = soup(built(tmp_path, monkeypatch, address, cited) / NOTEBOOK.replace("ipynb", "html"))
    hosts = ("github.com", "mybinder.org", "colab.example")
    links = [str(a["href"]) for a in page.find_all("a") if any(h in str(a["href"]) for h in hosts)]
    assert len(links) >= 3
    assert all(expected in link for link in links), links
    box = page.select_one(".run-box")
    assert isinstance(box, Tag)
    assert [a.get_text() for a in box.find_all("a")][1:] == ["Binder", "Colab", "Propose a change"]
    assert f"git clone https://github.com/{expected}\n" in box.get_text()


@pytest.mark.parametrize(("address", "published"), [("", True), ("https://github.com/a/b", False)])
def test_without_an_address_nothing_leads_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, published: bool
) -> None:
    """No repository, or none yet: the chapter says how to run a copy, and has no dead link."""
    site = built(tmp_path, monkeypatch, address, companion_published=published)
    page = soup(site / NOTEBOOK.replace("ipynb", "html"))
    assert not [a for a in page.find_all("a") if str(a.get("href", "")).startswith("http")]
    box = page.select_one(".run-box")
    assert isinstance(box, Tag)
    assert f".venv/bin/jupyter lab {NOTEBOOK}" in box.get_text()
    assert [a.get_text() for a in box.find_all("a")] == ["Download the notebook"]


def test_every_notebook_says_how_to_run_it(site: Path) -> None:
    """On the built site: a command with the right path, and the notebook itself."""
    sources = sorted((site / "_sources").rglob("*.ipynb"))
    assert len(sources) > 20
    for source in sources:
        path = source.relative_to(site / "_sources")
        page = site / path.with_suffix(".html")
        box = soup(page).select_one(".run-box")
        assert isinstance(box, Tag), path
        assert f"jupyter lab {path.as_posix()}" in box.get_text()
        assert (smallbook.REPOSITORY / path).is_file()
        link = box.select_one("a[download]")
        assert isinstance(link, Tag)
        assert (page.parent / str(link["href"])).resolve() == source.resolve()


# Sharing


def figure(folder: str) -> str:
    kinds = {"svg": "svg", "dark": "svg", "pdf": "pdf", "png": "png", "csv": "csv"}
    files = {kind: f"figures/curve.{ending}" for kind, ending in kinds.items()}
    return json.dumps(
        {"name": "curve", "chapter": f"{folder}/chapter", "files": files, "alt": "A rise"}
    )


def test_previews_have_a_picture_once_there_is_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chapter's figure, and the section's first for the section; absolute, or not at all."""
    results = tmp_path / "source/book/_static/results/figures"
    results.mkdir(parents=True)
    (results / "curve.json").write_text(figure("05-section"), encoding="utf-8")
    site = built(tmp_path, monkeypatch, "", html_baseurl="https://example.org/book")
    picture = "https://example.org/book/_static/results/figures/curve.png"
    for name in ("book/05-section/chapter.html", "book/05-section/index.html"):
        page = soup(site / name)
        tags = {str(m["property"]): str(m["content"]) for m in page.select("meta[property]")}
        assert tags["og:image"] == picture
        assert tags["og:image:alt"] == "A rise"
        assert tags["og:url"] == f"https://example.org/book/{name}"
    assert '<base href="/book/">' in (site / "404.html").read_text(encoding="utf-8")


def test_relative_pictures_are_not_offered(site: Path, pages: list[str]) -> None:
    for name in pages:
        for tag in soup(site / name).select('meta[property="og:image"]'):
            assert str(tag["content"]).startswith("https://"), name


# Addresses that lead nowhere


@pytest.fixture
def host(site: Path, tmp_path: Path) -> Iterator[str]:
    """The site as ``attsvm serve`` shows it."""
    (tmp_path / "html").symlink_to(site)
    server = serve.server(Layout(tmp_path, tmp_path), "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("address", ["nowhere", "book/05-local-convergence/no/such/page.html"])
def test_a_lost_reader_finds_back(browser: Browser, host: str, address: str) -> None:
    """At any depth, the page is whole and its links lead home."""
    page = browser.new_page()
    answer = page.goto(f"{host}/{address}")
    assert answer is not None and answer.status == 404
    assert page.locator("h1").inner_text() == "No page lies in this direction"
    page.get_by_label("Search the book").fill("feasibility")
    page.get_by_role("button", name="Search").click()
    page.locator("#search-results li a").first.wait_for()
    page.goto(f"{host}/{address}")
    page.get_by_role("link", name="Go to the first page").click()
    page.wait_for_url("**/book/intro.html")
    assert page.locator("h1").count() == 1
    page.close()


def test_the_page_opens_from_disk(browser: Browser, site: Path) -> None:
    with visitor(browser, site.as_uri(), 390, "dark") as (page, problems):
        page.goto(f"{site.as_uri()}/404.html")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.get_by_role("link", name="Go to the first page").click()
        page.wait_for_url("**/book/intro.html")
    assert not problems
