"""Builds books of a few pages with the companion extension, to see what it draws and refuses."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

REPOSITORY = Path(__file__).parents[2]


def build(
    folder: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch, **settings: Any
) -> tuple[Path, str]:
    """Build a book of these files (path → content) in an empty folder; its pages, the warnings.

    All pages but ``index`` go into the table of contents, in this order.
    """
    source = folder / "source"
    (source / "book" / "_static").mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(content, encoding="utf-8")
    pages = [name.removesuffix(".md") for name in files if name.endswith(".md")]
    listed = "\n".join(pages)
    (source / "index.md").write_text(f"# Book\n\n```{{toctree}}\n{listed}\n```\n", encoding="utf-8")
    return render(source, folder, **settings)


def render(source: Path, folder: Path, **settings: Any) -> tuple[Path, str]:
    """Run Sphinx on files whose drawings and results lie in ``book/_static``, likewise."""
    warnings = io.StringIO()
    defaults: dict[str, Any] = {
        "extensions": ["myst_nb", "sphinx_proof", "sphinxcontrib.bibtex", "companion.site"],
        "html_theme": "sphinx_book_theme",
        "html_static_path": [str(source / "book" / "_static")],
        "nb_execution_mode": "off",
        "myst_enable_extensions": ["colon_fence", "dollarmath"],
        "numfig": True,
        "nitpicky": True,
        "exclude_patterns": ["book/_static/**", "book/_data/**"],
    }
    if "extensions" not in settings:
        defaults["bibtex_bibfiles"] = [str(REPOSITORY / "book" / "references.bib")]
    with docutils_namespace():
        app = Sphinx(
            srcdir=source,
            confdir=None,
            outdir=folder / "site",
            doctreedir=folder / "trees",
            buildername="html",
            confoverrides=defaults | settings,
            status=None,
            warning=warnings,
        )
        app.build(force_all=True)
    return folder / "site", warnings.getvalue()
