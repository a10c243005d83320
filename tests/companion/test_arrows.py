"""Who imports whom: what stands in the sources, also within functions and for types only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import booktools
import pytest

FORMATS = {"errors", "claims", "records", "chunks", "sources", "cli", "__version__"}
"""What the tool may take from the package: what chapters write, and the frame of the commands."""
ROOMS = {
    "errors": set(),
    "build": {"errors"},
    "site": {"errors", "build"},
    "run": {"errors", "build", "site"},
    "ship": {"errors", "build", "site", "run"},
    "cli": {"build", "run", "ship"},
}
"""Whom each room of the tool may use beside itself."""


def _modules(package: str) -> dict[str, Path]:
    files = (booktools.REPOSITORY / package).rglob("*.py")
    parts = {path: path.relative_to(booktools.REPOSITORY).with_suffix("").parts for path in files}
    return {".".join(names).removesuffix(".__init__"): path for path, names in parts.items()}


MODULES = {package: _modules(package) for package in ("attsvm", "companion", "tools")}


def _imports(path: Path) -> Iterator[str]:
    """Full names of what a file imports: modules, and names in modules."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _arrows(package: str) -> dict[str, set[str]]:
    """Which modules of its package each module imports."""
    known = MODULES[package]
    return {
        name: {
            found if found in known else found.rpartition(".")[0]
            for found in _imports(path)
            if found.partition(".")[0] == package
        }
        & set(known) - {name}
        for name, path in known.items()
    }


def test_the_package_knows_nothing_of_its_tools() -> None:
    assert len(MODULES["attsvm"]) > 30
    for name, path in MODULES["attsvm"].items():
        rooms = {found.partition(".")[0] for found in _imports(path)}
        assert not rooms & {"companion", "tools"}, name


def test_the_tool_takes_formats_only_from_the_package() -> None:
    taken = {
        name: {found.split(".")[1] for found in _imports(path) if found.startswith("attsvm.")}
        for name, path in MODULES["companion"].items()
    }
    assert set().union(*taken.values()) >= {"errors", "records", "cli"}
    assert not {name: parts - FORMATS for name, parts in taken.items() if parts - FORMATS}


@pytest.mark.parametrize("package", ["attsvm", "companion"])
def test_imports_run_in_no_circle(package: str) -> None:
    # A package stands for what its `__init__` gathers, and gathering is no use of it.
    arrows = {
        name: {found for found in used if not name.startswith(f"{found}.")}
        for name, used in _arrows(package).items()
    }
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_rooms_of_the_tool_use_only_those_below() -> None:
    for name, used in _arrows("companion").items():
        if name in ("companion", "companion.setup"):
            continue
        room = name.split(".")[1]
        wrong = {found for found in used if found.split(".")[1] not in {room, *ROOMS[room]}}
        assert not wrong, name
