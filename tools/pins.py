"""The exact versions: write or check ``requirements.lock`` and ``environment.yml``.

``python -m tools.pins`` writes both from the environment that runs it (``make lock`` does so
in a fresh one); ``--check`` compares instead.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

__all__ = ["environment_text", "lock_text", "main", "read_lock", "required"]

PROJECT = "attsvm"
EXTRAS = ("dask", "dev")
TOOL = "attsvm-companion"
PYTHON = "3.11"
HEADER = """\
# Every version that the book was built and tested with. Written by `make lock`; do not edit.
# torch is the plain release: a build for the CPU alone (local label +cpu) satisfies it too.
"""


def required() -> dict[str, str]:
    """All packages that attsvm and its tool need in this environment, with installed versions.

    Returns
    -------
    dict
        Version (without a local label such as ``+cpu``) by normalised name, sorted.

    Raises
    ------
    importlib.metadata.PackageNotFoundError
        If a required package is not installed.
    """
    versions: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(TOOL, ""), *((PROJECT, extra) for extra in ("", *EXTRAS))]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        versions[name] = Version(importlib.metadata.version(name)).public
        for requirement in _requirements(name, extra):
            needed = canonicalize_name(requirement.name)
            waiting += [(needed, part) for part in ("", *requirement.extras)]
    del versions[PROJECT], versions[TOOL]
    return dict(sorted(versions.items()))


# What torch's build for CUDA asks for beside torch: it follows from torch's own version, and a lock
# that named it could not be installed where there is no such build.
CUDA = ("cuda-", "nvidia-", "triton")


def _requirements(name: str, extra: str) -> Iterator[Requirement]:
    for text in importlib.metadata.requires(name) or ():
        requirement = Requirement(text)
        if name == "torch" and requirement.name.startswith(CUDA):
            continue
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


def lock_text(versions: dict[str, str]) -> str:
    """The lock's content for these versions."""
    return HEADER + "".join(f"{name}=={version}\n" for name, version in versions.items())


def environment_text(versions: dict[str, str]) -> str:
    """The conda environment's content (Binder reads it) for these versions."""
    lines = [
        "# The same versions as requirements.lock, for conda and Binder. Written by `make lock`.",
        f"name: {PROJECT}",
        "channels:",
        "  - conda-forge",
        "dependencies:",
        f"  - python={PYTHON}",
        "  - pip",
        "  - pip:",
        *(f"      - {name}=={version}" for name, version in versions.items()),
        "      - --editable .",
        "      - --editable companion",
    ]
    return "\n".join(lines) + "\n"


def read_lock(path: Path) -> dict[str, str]:
    """Versions that a lock file holds, by normalised name.

    Raises
    ------
    ValueError
        If a line is not an exact pin.
    """
    versions: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if text:
            name, separator, version = text.partition("==")
            if not separator:
                raise ValueError(f"{path.name}: expected name==version, got {line!r}")
            versions[canonicalize_name(name)] = version
    return versions


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the two files.

    Parameters
    ----------
    arguments
        By default those of the process.

    Returns
    -------
    int
        0, or 1 if a file differs under ``--check``.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.pins", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="folder of the two files")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args(arguments)
    versions = required()
    files = {
        "requirements.lock": lock_text(versions),
        "environment.yml": environment_text(versions),
    }
    differing = 0
    for name, text in files.items():
        path = options.root / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            print(f"{name}: up to date ({len(versions)} packages)")
        elif options.check:
            print(f"{name}: differs from what is installed", file=sys.stderr)
            differing += 1
        else:
            path.write_text(text, encoding="utf-8")
            print(f"{name}: written ({len(versions)} packages)")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
