"""Turn a staged book into the site with Jupyter Book, every warning an error."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from companion.build.layout import Layout
from companion.build.pagecheck import page_problems
from companion.build.schedule import environment
from companion.errors import BuildError

__all__ = ["publish", "render"]

WARNING = re.compile(r"(WARNING|ERROR|CRITICAL)\b")
# MyST-NB counts the lines of a notebook as 10000 times the cell's number plus the line in the cell.
LINE = re.compile(r"\.ipynb:(\d+)(\d{4}):")
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def render(layout: Layout, staged: Path) -> Path:
    """Run Jupyter Book on a staged book; the folder of HTML is still in scratch space.

    Raises
    ------
    BuildError
        If Jupyter Book fails or warns, if a link leads nowhere, or if a picture has no alternative
        text; the message lists what is wrong by page.
    """
    out = layout.work / "render"
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
    command += ["build", str(staged), "--path-output", str(out), "-W", "-n", "--keep-going"]
    done = subprocess.run(
        command,
        env=environment(layout),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    text = ANSI.sub("", done.stdout).replace(f"{staged}{os.sep}", "")
    log = layout.logs / "jupyter-book.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(text, encoding="utf-8")
    html = out / "_build" / "html"
    if done.returncode != 0 or not (html / "index.html").is_file():
        raise BuildError("Jupyter Book could not render the book", [*_causes(text), f"log: {log}"])
    problems = page_problems(html)
    if problems:
        raise BuildError("the rendered pages do not hold together", problems)
    return html


def _causes(text: str) -> list[str]:
    """The lines of Jupyter Book's output that say what is wrong, each once."""
    lines = [
        LINE.sub(lambda place: f".ipynb, cell {place[1]}, line {int(place[2])}:", line)
        for line in text.splitlines()
        if WARNING.search(line)
    ]
    if "Exception occurred:" in text:
        crash = text.partition("Exception occurred:")[2].partition("The full traceback")[0]
        lines += crash.strip().splitlines()
    return list(dict.fromkeys(lines)) or text.splitlines()[-20:]


def publish(layout: Layout, html: Path) -> Path:
    """Put a rendered site in the place of the last one.

    The last good site stays until the new one is complete; the exchange is two renames.
    """
    # GitHub Pages would leave out every folder whose name starts with an underscore.
    (html / ".nojekyll").touch()
    # For Sphinx's next build in place, which never comes; it hashes absolute paths.
    (html / ".buildinfo").unlink(missing_ok=True)
    last = layout.work / "last-site"
    if layout.site.exists():
        os.rename(layout.site, last)
    try:
        os.rename(html, layout.site)
    except OSError:
        if last.exists():
            os.rename(last, layout.site)
        raise
    return layout.site
