"""The first code cell of every chapter: it installs the package where it is missing.

A chapter opened in Colab finds no `attsvm`; there the cell installs it from the repository that
``_config.yml`` names. Anywhere else it does nothing, and the site does not show it.
``python -m tools.install_cell`` writes the cell into all chapters, ``--check`` compares.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import yaml

from attsvm.errors import ArgumentError
from companion.build.chapters import discover
from companion.build.layout import Layout

__all__ = ["install_cell", "installs", "main", "with_cell"]

SOURCE = """\
import importlib.util

if importlib.util.find_spec("attsvm") is None:
    %pip install -q "attsvm @ git+{url}@{branch}"
"""


def install_cell(layout: Layout) -> dict[str, Any]:
    """The cell (notebook format 4.5) for the repository and branch that ``_config.yml`` names.

    Raises
    ------
    ArgumentError
        If the configuration names no repository.
    """
    content = yaml.safe_load(layout.config.read_text(encoding="utf-8")) or {}
    repository = {"url": None, "branch": "main"} | (content.get("repository") or {})
    url = repository["url"]
    if not isinstance(url, str) or not url.startswith("https://"):
        raise ArgumentError("repository.url in _config.yml", "an https address", repr(url))
    source = SOURCE.format(url=url.rstrip("/"), branch=repository["branch"])
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": "install",
        "metadata": {"tags": ["install", "remove-cell"]},
        "outputs": [],
        "source": source.rstrip("\n").splitlines(keepends=True),
    }


def installs(cell: dict[str, Any]) -> bool:
    """Whether a cell is the one that installs the package."""
    return "install" in cell.get("metadata", {}).get("tags", [])


def with_cell(notebook: dict[str, Any], cell: dict[str, Any]) -> dict[str, Any]:
    """A notebook (format 4) with this cell right after its title, in place of an older version."""
    others = [old for old in notebook["cells"] if not installs(old)]
    # After the title, not before: whoever opens the notebook should see first what it is about.
    place = 1 if others and others[0]["cell_type"] == "markdown" else 0
    return notebook | {"cells": [*others[:place], cell, *others[place:]]}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the cell into every chapter, or check that it is there (1 if a chapter differs)."""
    parser = argparse.ArgumentParser(prog="python -m tools.install_cell", description=__doc__)
    parser.add_argument("--root", metavar="DIR", help="the book (default: here or above)")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args(arguments)
    layout = Layout.of(options.root)
    cell = install_cell(layout)
    wanted = [(chapter, with_cell(chapter.notebook, cell)) for chapter in discover(layout)]
    differing = [(chapter, new) for chapter, new in wanted if new != chapter.notebook]
    for chapter, new in differing:
        if options.check:
            print(f"{chapter.id}: its cell that installs the package differs", file=sys.stderr)
        else:
            text = json.dumps(new, indent=1, ensure_ascii=False, sort_keys=True)
            chapter.path.write_text(text + "\n", encoding="utf-8")
            print(f"{chapter.id}: written")
    return 1 if options.check and differing else 0


if __name__ == "__main__":
    sys.exit(main())
