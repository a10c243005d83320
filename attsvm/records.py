"""Where a chapter leaves what it found, so that the rebuild and the site can pick it up.

The rebuild tells a running chapter through environment variables who it is and where to write.  In
plain Jupyter none is set: results then go to ``./attsvm-output`` and are shown in the notebook all
the same.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attsvm import _checks
from attsvm.errors import AttsvmError

__all__ = ["Context", "context", "display", "glue", "versions", "write_json"]

_PACKAGES = ("attsvm", "numpy", "scipy", "clarabel", "cvxpy", "torch", "matplotlib")


@dataclass(frozen=True)
class Context:
    """Who is running: the chapter, its profile, the commit, and the folder for results."""

    chapter: str
    profile: str
    commit: str
    output: Path


def context() -> Context:
    """Read the environment that the rebuild sets (``ATTSVM_CHAPTER``, ``ATTSVM_OUTPUT``, …)."""
    given = os.environ.get
    return Context(
        chapter=given("ATTSVM_CHAPTER", ""),
        profile=given("ATTSVM_PROFILE", "interactive"),
        commit=given("ATTSVM_COMMIT", "unknown"),
        output=Path(given("ATTSVM_OUTPUT", "attsvm-output")).absolute(),
    )


def write_bytes(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Write a file so that it is there whole or not at all.

    Parameters
    ----------
    path, content
        The file, whose folder is made if it is missing, and all of it.
    durable
        Wait until the disk has it, so that not even a power cut leaves half a file.

    Raises
    ------
    AttsvmError
        If the folder cannot be written to or the disk is full.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise AttsvmError(f"cannot write to {path.parent}: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        Path(name).chmod(0o644)  # mkstemp makes private files; a site must be readable
        os.replace(name, path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise AttsvmError(f"cannot write {path}: {error.strerror}") from error
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_json(path: Path, content: Any) -> None:
    """Write JSON with sorted keys: the same content gives the same bytes."""
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_bytes(path, text.encode() + b"\n")


def versions() -> dict[str, str]:
    """Versions of what a result depends on, without importing any of it."""
    found = dict.fromkeys(_PACKAGES, "not installed")
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            # A local label such as +cpu names a build, not another source: leave it out.
            found[name] = importlib.metadata.version(name).split("+")[0]
    return found


def display(bundle: dict[str, Any]) -> None:
    """Show a mime bundle if a notebook is listening; say its plain text in a terminal."""
    # A notebook has imported IPython; anyone else need not have it.
    ipython = sys.modules.get("IPython")
    if ipython is None or ipython.get_ipython() is None:
        print(bundle["text/plain"])
    else:
        from IPython.display import display as show

        show(bundle, raw=True)


def glue(key: str, value: float | int | str) -> None:
    """Make a number of this chapter available to its prose (and to other pages) under a key.

    Parameters
    ----------
    key, value
        Name to refer to, unique in the chapter, and a number or a text.

    Raises
    ------
    ArgumentError
        If the value is neither a finite number nor a text.
    """
    if not isinstance(value, str):
        number = _checks.number("value", value)
        value = value if isinstance(value, int) else number
    # myst-nb's own helper does the same, but importing it costs seconds in every kernel.
    mime = "application/papermill.record/"
    from IPython.display import display as show

    shown = repr(value)
    show(
        {mime + "text/plain": shown, "text/plain": f"{key} = {shown}"},
        raw=True,
        metadata={"scrapbook": {"name": key, "mime_prefix": mime}},
    )
