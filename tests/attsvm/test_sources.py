"""What code a result depends on: nothing that matters is missed, nothing that does not counts."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

import pytest

from attsvm import sources

MODULES = [
    ".".join(path.relative_to(sources.HOME).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((sources.HOME / "attsvm").rglob("*.py"))
]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("x = 1  # one\n", "x   =  1\n", True),
        ('"""Says."""\nx = 1\n', '"""Says otherwise."""\n\n\nx = 1\n', True),
        ('def f():\n    """A."""\n    return 1\n', "def f():\n    return 1\n", True),
        ('class C:\n    """A."""\n', 'class C:\n    """B."""\n', True),
        ("x = 1\n", "x = 2\n", False),
        ("x = 'a'\n", "x = 'b'\n", False),
        ("def f(a=1): return a\n", "def f(a=2): return a\n", False),
        ("def f():\n    return 'a'\n", "def f():\n    return 'b'\n", False),
        ("import a\n", "import b\n", False),
        ("x = 1\ny = 2\n", "y = 2\nx = 1\n", False),
    ],
)
def test_code_changes_the_digest_and_what_is_said_of_it_does_not(
    tmp_path: Path, before: str, after: str, same: bool
) -> None:
    digests = {sources.digest(write(tmp_path / "m.py", text)) for text in (before, after)}
    assert (len(digests) == 1) == same == (sources.code(before) == sources.code(after))


def test_data_of_a_package_counts_with_it(tmp_path: Path) -> None:
    package = write(tmp_path / "p" / "__init__.py", "")
    first = sources.digest(package)
    table = write(tmp_path / "p" / "table.csv", "1\n")
    second = sources.digest(package)
    write(table, "2\n")
    assert len({first, second, sources.digest(package)}) == 3
    assert sources.digest(sources.HOME / "attsvm" / "published" / "__init__.py")


def test_closure_follows_every_kind_of_import(tmp_path: Path) -> None:
    write(tmp_path / "p" / "__init__.py", "from typing import TYPE_CHECKING\n"
          "if TYPE_CHECKING:\n    from p import seen_by_checkers\n")  # fmt: skip
    for name in ("a", "b", "c", "d", "e", "seen_by_checkers", "alone"):
        write(tmp_path / "p" / f"{name}.py", "")
    write(tmp_path / "p" / "a.py", "import p.b\n")
    write(tmp_path / "p" / "b.py", "def f():\n    from p import c\n    return c\n")
    write(tmp_path / "p" / "c.py", "from .q.inner import value\n")
    write(tmp_path / "p" / "q" / "__init__.py", "from .. import d\n")
    write(tmp_path / "p" / "q" / "inner.py", "from p.e import x\nimport numpy.linalg, json\n")
    found = sources.closure(["p.a"], tmp_path)
    assert list(found) == ["p", "p.a", "p.b", "p.c", "p.d", "p.e", "p.q", "p.q.inner"]
    assert sources.outside(found) == {"numpy", "p"}


@pytest.mark.parametrize("module", MODULES)
def test_importing_a_module_loads_nothing_that_its_closure_lacks(module: str) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("needs fork to import each module afresh")
    for library in sources.outside(sources.closure([module])):
        if library not in ("attsvm", "distributed", "ray"):
            __import__(library)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        for name in [name for name in sys.modules if name.partition(".")[0] == "attsvm"]:
            del sys.modules[name]
        try:
            __import__(module)
        except BaseException as error:
            os.write(writing, f"failed: {error!r}".encode())
            os._exit(1)
        loaded = [name for name in sys.modules if name.partition(".")[0] == "attsvm"]
        os.write(writing, "\n".join(loaded).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        loaded = stream.read().split("\n")
    assert os.waitpid(child, 0)[1] == 0, loaded
    assert module in loaded
    assert set(loaded) <= set(sources.closure([module]))


def test_no_module_imports_what_cannot_be_read_from_its_source() -> None:
    dynamic = []
    for module in MODULES:
        path = sources.locate(module)
        assert path is not None
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(node, "attr", getattr(node, "id", ""))
            if name in ("import_module", "__import__", "exec", "eval"):
                dynamic.append(module)
            if isinstance(node, ast.Import) and any(a.name == "attsvm" for a in node.names):
                dynamic.append(module)
    # The package loads its modules when they are first used; no module uses it that way.
    assert set(dynamic) == {"attsvm"}


def test_versions_are_those_installed_with_all_that_is_required() -> None:
    import numpy
    import seaborn

    found = sources.versions(["seaborn", "json", "__main__", "nowhere_at_all"])
    assert found["seaborn"] == seaborn.__version__
    assert found["numpy"] == numpy.__version__
    assert {"pandas", "matplotlib"} <= set(found)
    assert sources.versions(["yaml"])["pyyaml"]


def test_loose_modules_have_homes_and_installed_ones_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "loose_helper.py", "x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    __import__("loose_helper")
    assert sources.homes(["loose_helper", "numpy.linalg", "json"]) == {sources.HOME, tmp_path}
