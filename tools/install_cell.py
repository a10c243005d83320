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
from pathlib import Path
from typing import Any

from attsvm.errors import ArgumentError
from companion.build.chapters import discover
from companion.build.layout import Layout

__all__ = ["install_cell", "installs", "main", "requirement", "with_cell"]

ID = "install"
TAGS = ["install", "remove-cell"]
SOURCE = """\
import importlib.util

if importlib.util.find_spec("attsvm") is None:
    %pip install -q "{requirement}"
"""


def requirement(layout: Layout) -> str:
    """What pip is asked to install: the repository and branch that ``_config.yml`` names.

    Parameters
    ----------
    layout
        Where the book lies.

    Raises
    ------
    ArgumentError
        If the configuration names no repository.
    """
    import yaml

    content = yaml.safe_load(layout.config.read_text(encoding="utf-8")) or {}
    repository = content.get("repository") or {}
    url = repository.get("url")
    if not isinstance(url, str) or not url.startswith("https://"):
        raise ArgumentError("repository.url in _config.yml", "an https address", repr(url))
    return f"attsvm @ git+{url.rstrip('/')}@{repository.get('branch', 'main')}"


def install_cell(requirement: str) -> dict[str, Any]:
    """The cell (notebook format 4.5) that installs a requirement if `attsvm` is missing.

    Parameters
    ----------
    requirement
        What pip installs, e.g. ``attsvm @ git+https://…@main``.
    """
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": ID,
        "metadata": {"tags": list(TAGS)},
        "outputs": [],
        "source": SOURCE.format(requirement=requirement).rstrip("\n").splitlines(keepends=True),
    }


def installs(cell: dict[str, Any]) -> bool:
    """Whether a cell is the one that installs the package."""
    return "install" in cell.get("metadata", {}).get("tags", [])


def with_cell(notebook: dict[str, Any], cell: dict[str, Any]) -> dict[str, Any]:
    """A notebook whose first code cell is the given one; an older version of it goes.

    Parameters
    ----------
    notebook
        A notebook of format 4; not changed. It begins with its title.
    cell
        The cell to put before all other code.

    Returns
    -------
    dict
        The notebook with the cell right after its title.
    """
    others = [old for old in notebook["cells"] if not installs(old)]
    # After the title, not before: whoever opens the notebook should see first what it is about.
    place = 1 if others and others[0]["cell_type"] == "markdown" else 0
    return notebook | {"cells": [*others[:place], cell, *others[place:]]}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the cell into every chapter, or check that it is there.

    Parameters
    ----------
    arguments
        By default those of the process.

    Returns
    -------
    int
        0, or 1 if a chapter differs under ``--check``.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.install_cell", description=__doc__)
    parser.add_argument("--root", metavar="DIR", help="the book (default: here or above)")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args(arguments)
    layout = Layout.of(options.root)
    cell = install_cell(requirement(layout))
    differing = 0
    for chapter in discover(layout):
        wanted = with_cell(chapter.notebook, cell)
        if wanted == chapter.notebook:
            continue
        differing += 1
        if options.check:
            print(f"{chapter.id}: its cell that installs the package differs", file=sys.stderr)
            continue
        _write(chapter.path, wanted)
        print(f"{chapter.id}: written")
    return 1 if options.check and differing else 0


def _write(path: Path, notebook: dict[str, Any]) -> None:
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
