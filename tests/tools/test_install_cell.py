"""The cell that installs the package where a chapter finds none: in Colab."""

from __future__ import annotations

import json
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
CELL = install_cell.install_cell(ROOT)
REPOSITORY = yaml.safe_load(ROOT.config.read_text())["repository"]
REQUIREMENT = f'"attsvm @ git+{REPOSITORY["url"]}@{REPOSITORY["branch"]}"'


@pytest.mark.parametrize("chapter", discover(ROOT), ids=lambda chapter: chapter.id)
def test_first_code_cell_installs_and_stays_off_the_site(chapter: Chapter) -> None:
    title, first = chapter.notebook["cells"][:2]
    assert title["cell_type"] == "markdown"
    assert "".join(title["source"]).startswith("# ")
    assert first == CELL
    assert "remove-cell" in first["metadata"]["tags"]
    assert sum(map(install_cell.installs, chapter.notebook["cells"])) == 1


PROGRAM = """
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


@pytest.mark.parametrize(
    ("present", "asked"), [("true", []), ("false", [f"install -q {REQUIREMENT}"])]
)
def test_cell_asks_pip_once_and_only_where_the_package_is_missing(
    present: str, asked: list[str]
) -> None:
    """Run in IPython's own shell, with pip replaced by something that notes what it is asked."""
    command = [sys.executable, "-c", PROGRAM, "".join(CELL["source"]), present]
    assert json.loads(subprocess.check_output(command, timeout=60)) == asked


def test_another_address_reaches_every_chapter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = booktools.copy_book(tmp_path)
    config = root / "_config.yml"
    text = config.read_text()
    chapter = booktools.notebook_path(root)
    before = json.loads(chapter.read_text())["cells"]
    command = ["--root", str(root)]
    for address in ("{url: https://example.org/one}", "{url: https://example.org/two, branch: b}"):
        config.write_text(f"{text}repository: {address}\n")
        assert install_cell.main([*command, "--check"]) == 1
        assert booktools.CHAPTER in capsys.readouterr().err
        assert install_cell.main(command) == 0
        assert install_cell.main([*command, "--check"]) == 0
    after = json.loads(chapter.read_text())["cells"]
    assert [cell for cell in after if not install_cell.installs(cell)] == before
    (cell,) = [cell for cell in after if install_cell.installs(cell)]
    assert '"attsvm @ git+https://example.org/two@b"' in "".join(cell["source"])


def test_book_without_a_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="repository"):
        install_cell.install_cell(Layout.of(booktools.copy_book(tmp_path), tmp_path / "out"))
