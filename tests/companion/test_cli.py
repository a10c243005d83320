"""The command line: what it refuses, in which words and with which exit code."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import booktools
import pytest

import attsvm
from attsvm import cli


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A private copy of the tiny book, not built."""
    return booktools.copy_book(tmp_path)


def usage(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run in this process, expect exit code 2, return the complaint."""
    assert cli.main([str(argument) for argument in arguments]) == 2
    return capsys.readouterr().err


def test_module_and_script_are_one_command() -> None:
    script = Path(sys.executable).parent / "attsvm"
    for command in ([sys.executable, "-m", "attsvm"], [str(script)]):
        said = subprocess.check_output([*command, "--version"], text=True)
        assert said == f"attsvm {attsvm.__version__}\n"


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--help"])
    said = capsys.readouterr().out
    names = ["params", "run", "sweep", "solve", "train", "build", "list", "serve", "clean", "cache"]
    assert all(re.search(rf"^    {name} ", said, re.MULTILINE) for name in names)


def test_help_imports_nothing_heavy() -> None:
    """Whoever mistypes an option should not wait for torch."""
    code = (
        "import sys\nfrom attsvm import cli\n"
        "try:\n    cli.main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'torch', 'pandas', 'scipy', 'matplotlib', 'yaml', 'papermill'}\n"
        "print('loaded:', *sorted(heavy & set(sys.modules)))"
    )
    said = subprocess.check_output(
        [sys.executable, "-c", code], env=booktools.settings(), text=True
    )
    assert said.splitlines()[-1] == "loaded:"


@pytest.mark.parametrize("name", ["run", "sweep", "solve", "train"])
def test_command_explains_its_exit_codes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main([name, "--help"])
    assert "Exit codes: 0" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["bake"], ["build", "--jobs", "many"]])
def test_nonsense_is_wrong_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(arguments)


READ_ONLY = "/proc/self/attsvm" if Path("/proc/self").exists() else "/dev/attsvm"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--profile", "huge"], "profile: expected one of quick, full, got 'huge'"),
        (["--only", "nowhere"], "chapter: expected one of 01-demo/line, got 'nowhere'"),
        (["--jobs", 0], "jobs: expected a positive number, got 0"),
        (["--output", "_toc.yml/below"], "output: expected a folder that can be written, got "),
        # Permission bits stop nobody who is root; the kernel's own file systems stop everybody.
        (["--output", READ_ONLY], "output: expected a folder that can be written"),
    ],
)
def test_what_a_build_refuses(
    book: Path, options: list[object], said: str, capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:
    monkeypatch.chdir(book)
    complaint = usage(capsys, "build", *options)
    assert complaint.startswith(f"attsvm: {said}") and complaint.count("\n") == 1


def test_no_book_here(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    said = usage(capsys, "list", "--root", tmp_path)
    assert (
        said == f"attsvm: root: expected a folder with _config.yml and _toc.yml, got {tmp_path}\n"
    )
    monkeypatch.chdir(tmp_path)
    assert "root: expected a book (_config.yml and _toc.yml) here or above" in usage(capsys, "list")


def test_book_is_found_from_below(book: Path, capsys: pytest.CaptureFixture[str], monkeypatch):
    monkeypatch.chdir(book / "book" / "01-demo")
    assert cli.main(["list"]) == 0
    assert re.search(r"01-demo/line\s+would run\s+first run \(full\)", capsys.readouterr().out)


def test_looking_at_a_book_writes_nothing(book: Path) -> None:
    before = booktools.tree(book)
    assert cli.main(["list", "--root", str(book)]) == 0
    assert booktools.tree(book) == before
    assert not (book / "_build").exists()


def test_output_must_not_swallow_the_book(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in (book, book.parent):
        said = usage(capsys, "clean", "--root", book, "--output", folder)
        assert f"output: expected a folder of its own, got {folder}, which holds the book" in said


def test_malformed_source_date(book: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    said = usage(capsys, "build", "--root", book)
    assert "SOURCE_DATE_EPOCH: expected whole seconds since 1970, got 'yesterday'" in said


def test_clean_removes_what_a_build_makes_and_nothing_else(book: Path) -> None:
    output = book / "_build"
    made = ("html", "chapters/01-demo/line/key", "chunks/01-demo", "logs", "work", "settings")
    for folder in made:
        (output / folder).mkdir(parents=True)
    (output / "times.json").write_text("{}")
    (output / "notes.txt").write_text("mine")
    assert cli.main(["clean", "--root", str(book), "--keep-cache"]) == 0
    assert sorted(path.name for path in output.iterdir()) == ["chapters", "chunks", "notes.txt"]
    assert cli.main(["clean", "--root", str(book)]) == 0
    assert [path.name for path in output.iterdir()] == ["notes.txt"]
    (output / "notes.txt").unlink()
    assert cli.main(["clean", "--root", str(book)]) == 0
    assert not output.exists()


def test_serve_without_a_site(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["serve", "--root", str(book)]) == 1
    assert "no site in" in capsys.readouterr().err


def test_serve_shows_the_site_and_nothing_above_it(
    book: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = book / "_build" / "html"
    site.mkdir(parents=True)
    (site / "index.html").write_text("<p>hello</p>")
    (book / "_build" / "secret").write_text("not for you")
    with booktools.serving(book) as address:
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address, timeout=30) as page:
            assert page.read() == b"<p>hello</p>"
            assert page.headers["Cache-Control"] == "no-store"
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{address}../secret", timeout=30)
        assert caught.value.code == 404
        (site / "404.html").write_text("<p>100 % lost</p>")
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{address}nowhere", timeout=30)
        assert (caught.value.code, caught.value.read()) == (404, b"<p>100 % lost</p>")
        port = address.rstrip("/").rpartition(":")[2]
        assert cli.main(["serve", "--root", str(book), "--port", port]) == 1
        assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err
