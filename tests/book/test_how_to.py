"""The how-to pages: every command and every line of Python on them is run, in order.

A page's blocks run one after the other in one folder that looks like a checkout.  Below a command
stands what it prints, in full or with "…" for lines that vary; nothing below it means that any
output will do.  What cannot run here (the network, minutes of work) is listed with the file that
runs it instead.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from booktools import REPOSITORY, free_port, measured, write_results

PAGES = sorted((REPOSITORY / "book" / "how-to").glob("*.md"))
BLOCK = re.compile(
    r"^```\{?(?P<kind>console|python)\}?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)

ELSEWHERE = {
    "make env": ".ci/run",
    "make book": ".ci/run",
    "make test": ".ci/run",
    "make lab": "tests/book/test_lab.py",
    "make lock": "tests/tools/test_packaging.py",
    "make drift": ".github/workflows/drift.yml",
}
"""Commands that another script runs, and which."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its page, the line it begins at, its kind and its text."""

    page: str
    line: int
    kind: str
    text: str

    def commands(self) -> list[tuple[str, list[str]]]:
        """Commands of a console block, each with the lines that it prints."""
        found: list[tuple[str, list[str]]] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found:
                found[-1][1].append(line)
        return found


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page.name, text[: match.start()].count("\n") + 1, match["kind"], match["text"])
        for match in BLOCK.finditer(text)
    ]


def shown(printed: list[str], output: str) -> bool:
    """Whether an output is what a page shows; "…" stands for anything."""
    wanted = "\n".join(printed).strip()
    pattern = ".*".join(re.escape(part) for part in wanted.split("…"))
    return re.fullmatch(pattern, output.strip(), re.DOTALL) is not None


class Reader:
    """Somebody who does what a page says, in a folder of their own."""

    def __init__(self, folder: Path, replaced: dict[str, str]) -> None:
        self.folder = folder
        self._replaced = replaced
        self._python = ""
        self._background: list[subprocess.Popen[bytes]] = []
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        dropped = ("ATTSVM_CACHE", "ATTSVM_DASK", "ATTSVM_OUTPUT")
        kept = {key: value for key, value in os.environ.items() if key not in dropped}
        self._environment = kept | {"PATH": path, "OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1"}

    def _here(self, text: str) -> str:
        for wanted, replacement in self._replaced.items():
            text = text.replace(wanted, replacement)
        return text

    def follow(self, block: Block) -> None:
        """Do what a block says, and compare what it prints."""
        if block.kind == "python":
            self._python += self._here(block.text)
            (self.folder / "page.py").write_text(self._python)
            self._run(f"{sys.executable} page.py", block)
            return
        for command, printed in block.commands():
            if command in ELSEWHERE:
                continue
            if command.startswith("cd "):
                self.folder = self.folder / command.removeprefix("cd ")
            elif command.endswith(" &"):
                self._start(self._here(command.removesuffix(" &")))
            else:
                output = self._run(self._here(command), block, printed)
                if printed:
                    assert shown(printed, output), f"{block.page}, `{command}` printed:\n{output}"

    def _run(self, command: str, block: Block, printed: Sequence[str] = ()) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        where = f"{block.page}, line {block.line}: {command}\n{done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr, where
        if any(line.startswith("attsvm: ") for line in printed):
            assert done.returncode == 2, where  # the page shows what is refused
            return done.stderr
        # That numbers moved is what this command is there to say.
        assert done.returncode == 0 or command.startswith("attsvm drift"), where
        return done.stdout

    def _start(self, command: str) -> None:
        with (self.folder / "background.log").open("ab") as log:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self.folder,
                env=self._environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._background.append(process)

    def leave(self) -> None:
        """End what was started in the background."""
        for process in self._background:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What of a checkout the commands need: the book, without its history and environment."""
    folder = tmp_path / "attsvm"
    ignored = shutil.ignore_patterns("attsvm-output", ".ipynb_checkpoints", "__pycache__")
    shutil.copytree(REPOSITORY / "book", folder / "book", ignore=ignored)
    for name in ("_config.yml", "_toc.yml", "requirements.lock", "pyproject.toml", "Makefile"):
        shutil.copy(REPOSITORY / name, folder)
    return folder


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as a wheel: what pip makes of the repository, without the network."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "attsvm", source / "attsvm", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE", "LICENSE-prose"):
        shutil.copy(REPOSITORY / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "-w", folder, source], check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


def two_builds(folder: Path) -> None:
    """Results of two builds, for the page on drift."""
    published = {"value": 1.0, "halfwidth": 0.0}
    for name, shift, numpy in (("old", 0.0, "2.4.6"), ("new", 1.0, "2.5.0")):
        records = [
            measured("a", 0.5, halfwidth=0.1, as_published=published),
            measured("b", 0.25 + 0.05 * shift, halfwidth=0.1),
            measured("c", 0.75 + 1e-12 * shift, halfwidth=0.1),
        ]
        write_results(folder / name, *records, versions={"numpy": numpy})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_does_what_it_says(
    page: Path, checkout: Path, wheel: Path, request: pytest.FixtureRequest
) -> None:
    replaced = {
        '"attsvm @ git+https://github.com/attsvm/attsvm@main"': f"--no-deps '{wheel}'",
        "https://github.com/attsvm/attsvm": f"'{REPOSITORY}'",
        "8786": str(free_port()),
    }
    home = checkout.parent / "reader"
    home.mkdir()
    two_builds(checkout)
    reader = Reader(home if page.stem == "install" else checkout, replaced)
    request.addfinalizer(reader.leave)
    for block in blocks(page):
        reader.follow(block)


def test_every_page_is_in_the_book_and_on_the_list() -> None:
    toc = yaml.safe_load((REPOSITORY / "_toc.yml").read_text())
    files = re.findall(r"book/how-to/[\w-]+", json.dumps(toc))
    assert sorted(files) == [f"book/how-to/{page.stem}" for page in PAGES]
    index = (REPOSITORY / "book/how-to/index.md").read_text()
    listed = re.findall(r"\{doc\}`([\w-]+)`", index)
    assert sorted(listed) == sorted(page.stem for page in PAGES if page.stem != "index")


def test_commands_that_run_elsewhere_do_run_there() -> None:
    shown_commands = {
        command for page in PAGES for block in blocks(page) if block.kind == "console"
        for command, _ in block.commands()
    }  # fmt: skip
    for command, file in ELSEWHERE.items():
        assert command in shown_commands
        assert command in (REPOSITORY / file).read_text(), f"{file} does not run {command}"


def test_no_block_escapes() -> None:
    for page in PAGES:
        fences = re.findall(r"^```(.*)$", page.read_text(), re.MULTILINE)[::2]
        kinds = {fence for fence in fences if not fence.startswith("{")}
        assert kinds <= {"console", "python", "yaml", "text"}, page.name
        assert len(blocks(page)) == sum(fence in ("console", "python") for fence in fences)


@pytest.mark.parametrize(
    ("printed", "output", "same"),
    [
        (["a", "b"], "a\nb\n", True),
        (["a", "…"], "a\nb\nc\n", True),
        (["a", "b"], "a\nc\n", False),
        (["… of 5"], "3 of 5", True),
        (["… of 5"], "3 of 6", False),
    ],
)
def test_shown_output_is_compared(printed: list[str], output: str, same: bool) -> None:
    assert shown(printed, output) is same
