"""The built site, a browser, and a local web server, once per session."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import Server, browser_path
from filelock import FileLock
from handmade import build
from jaxtyping import install_import_hook
from playwright.sync_api import Browser, sync_playwright

__all__ = ["build"]

REPOSITORY = Path(__file__).parents[1]
# Before a test module imports the package.  A package's name would stand for all of its modules;
# what numba compiles must not be wrapped.
install_import_hook(
    [
        ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
        for path in (REPOSITORY / "attsvm").rglob("*.py")
        if path.name not in ("__init__.py", "_kernel.py")
    ],
    "shapes.arrays_only",
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Folder of the site: ``ATTSVM_SITE``, else a quick build in ``_build/test``.

    The folder outlives the session, so that a second run only executes what changed.
    """
    if given := os.environ.get("ATTSVM_SITE"):
        folder = Path(given).absolute()
    else:
        output = REPOSITORY / "_build" / "test"
        folder = output / "html"
        shared = tmp_path_factory.getbasetemp()
        if worker_id != "master":
            shared = shared.parent  # the workers of one session have this folder in common
        done = shared / "site-is-built"
        with FileLock(shared / "site.lock"):
            if not done.exists():
                command = [sys.executable, "-m", "attsvm", "build", "--profile", "quick"]
                command += ["--root", str(REPOSITORY), "--output", str(output)]
                built = subprocess.run(command, capture_output=True, text=True, check=False)
                if built.returncode:
                    pytest.fail(f"the site could not be built:\n{built.stdout}\n{built.stderr}")
                done.touch()
    if not (folder / "index.html").is_file():
        pytest.fail(f"no site in {folder}")
    return folder


@pytest.fixture(scope="session")
def pages(site: Path) -> list[str]:
    """Paths of all pages that hold text, relative to the site."""
    found = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    found = [page for page in found if not page.startswith("_static/") and page != "index.html"]
    assert len(found) > 3
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium without a window and without any traffic of its own."""
    with sync_playwright() as playwright:
        engine = playwright.chromium.launch(executable_path=browser_path(), args=FLAGS)
        yield engine
        engine.close()


@pytest.fixture(scope="session")
def server(site: Path) -> Iterator[Server]:
    """The site on 127.0.0.1."""
    with Server(site) as running:
        yield running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything that needs the built site carries the marker ``site``."""
    for item in items:
        if "site" in getattr(item, "fixturenames", ()):
            item.add_marker("site")
