"""The cell that installs the package where a chapter finds none: in Colab."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import booktools
import pytest
import yaml

from attsvm.errors import ArgumentError
from companion.build.chapters import Chapter, discover
from companion.build.layout import Layout
from tools import install_cell

ROOT = Layout.of(booktools.REPOSITORY, "/tmp/unused")
CHAPTERS = discover(ROOT)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.id)
def test_first_code_cell_installs_and_stays_off_the_site(chapter: Chapter) -> None:
    title, first = chapter.notebook["cells"][:2]
    assert title["cell_type"] == "markdown"
    assert "".join(title["source"]).startswith("# ")
    assert first == install_cell.install_cell(install_cell.requirement(ROOT))
    assert "remove-cell" in first["metadata"]["tags"]
    assert sum(map(install_cell.installs, chapter.notebook["cells"])) == 1


def test_address_is_the_configured_one() -> None:
    repository = yaml.safe_load(ROOT.config.read_text())["repository"]
    wanted = f"attsvm @ git+{repository['url']}@{repository['branch']}"
    assert install_cell.requirement(ROOT) == wanted


def run_cell(source: str, present: bool) -> list[tuple[str, str, str]]:
    """Run the cell in IPython's own shell, with pip replaced; what was asked of the magic."""
    program = """
import importlib.util, json, sys
from IPython.core.interactiveshell import InteractiveShell
asked = []
shell = InteractiveShell.instance()
shell.register_magic_function(lambda line: asked.append(line), "line", "pip")
find = importlib.util.find_spec
present = json.loads(sys.argv[2])
importlib.util.find_spec = lambda name: find(name) if name != "attsvm" else (1 if present else None)
shell.run_cell(sys.argv[1]).raise_error()
print(json.dumps(asked))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, source, json.dumps(present)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return json.loads(done.stdout)


def test_cell_asks_pip_once_and_only_where_the_package_is_missing() -> None:
    source = "".join(install_cell.install_cell("attsvm @ git+https://example.org/a@b")["source"])
    assert run_cell(source, present=True) == []
    assert run_cell(source, present=False) == ['install -q "attsvm @ git+https://example.org/a@b"']


def test_another_address_reaches_every_chapter(tmp_path: Path) -> None:
    root = booktools.copy_book(tmp_path)
    config = root / "_config.yml"
    text = config.read_text()
    config.write_text(f"{text}repository: {{url: https://example.org/one, branch: main}}\n")
    chapter = root / "book" / f"{booktools.CHAPTER}.ipynb"
    before = json.loads(chapter.read_text())["cells"]

    def command(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tools.install_cell", "--root", str(root), *more],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    missing = command("--check")
    assert missing.returncode == 1
    assert booktools.CHAPTER in missing.stderr
    assert command().returncode == 0
    assert command("--check").returncode == 0
    config.write_text(f"{text}repository: {{url: https://example.org/two, branch: next}}\n")
    assert command("--check").returncode == 1
    assert command().returncode == 0
    after = json.loads(chapter.read_text())["cells"]
    cells = [cell for cell in after if not install_cell.installs(cell)]
    assert cells == before
    (cell,) = [cell for cell in after if install_cell.installs(cell)]
    assert '"attsvm @ git+https://example.org/two@next"' in "".join(cell["source"])


def test_book_without_a_repository_is_refused(tmp_path: Path) -> None:
    root = booktools.copy_book(tmp_path)
    shutil.rmtree(root / "_build", ignore_errors=True)
    with pytest.raises(ArgumentError, match="repository"):
        install_cell.requirement(Layout.of(root, tmp_path / "out"))
