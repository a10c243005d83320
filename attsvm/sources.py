"""What code a result depends on: the modules that code reaches, and what each of them says.

For keys of caches.  A module's digest is that of its syntax tree less docstrings: comments, layout
and documentation change nothing.  What a module reaches is read from its import statements, those
inside functions too, so that nothing has to be imported to know it.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.metadata
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

__all__ = ["HOME", "closure", "code", "digest", "homes", "locate", "outside", "versions"]

HOME = Path(__file__).parents[1]
"""The folder that holds this package."""

# Every chapter's key has its own claims; a new claim elsewhere is no reason to run.
_APART = ("claims.toml", "py.typed")
_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)(.*)$")


def locate(module: str, home: Path = HOME) -> Path | None:
    """The file of a module, by its full name, in the folder of its top-level package; or None."""
    base = home.joinpath(*module.split("."))
    for path in (base / "__init__.py", base.with_suffix(".py")):
        if path.is_file():
            return path
    return None


def code(source: str) -> str:
    """The syntax tree of a source as text, without what changes no result: comments, docstrings.

    Raises
    ------
    SyntaxError
        If the source is no Python.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str())), *rest]:
                    node.body = rest or [ast.Pass()]
    return ast.dump(tree)


def digest(path: Path) -> str:
    """Hash of what the module in a file computes; of a package also of the data in its folder."""
    found = _digest(path.read_text(encoding="utf-8"))
    if path.name == "__init__.py":
        data = sorted(p for p in path.parent.iterdir() if p.is_file() and p.suffix != ".py")
        parts = [(p.name, p.read_bytes()) for p in data if p.name not in _APART]
        found = hashlib.sha256(repr((found, parts)).encode()).hexdigest() if parts else found
    return found


@functools.lru_cache(maxsize=1000)
def _digest(source: str) -> str:
    return hashlib.sha256(code(source).encode()).hexdigest()


def closure(modules: Iterable[str], home: Path = HOME) -> dict[str, Path]:
    """All modules below a folder that some modules reach by imports, themselves included.

    Parameters
    ----------
    modules
        Full names; those that do not lie below the folder are passed over.
    home
        The folder that holds their top-level packages.

    Returns
    -------
    dict
        File by name, sorted.
    """
    found: dict[str, Path] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        path = locate(name, home) if name else None
        if path and name not in found:
            found[name] = path
            # Importing a module runs its package first.
            waiting += [name.rpartition(".")[0], *_imports_of(name, path)]
    return dict(sorted(found.items()))


def _imports_of(name: str, path: Path) -> tuple[str, ...]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return _imports(package, path.read_text(encoding="utf-8"))


@functools.lru_cache(maxsize=1000)
def _imports(package: str, source: str) -> tuple[str, ...]:
    """What a module of a package imports; `outside` and `closure` see where that lies."""
    found: list[str] = []
    for node in _executed(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *filter(None, [base])])
            found.append(base)
            found += [f"{base}.{alias.name}" for alias in node.names]
    return tuple(found)


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only type checkers see."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        children: Iterable[ast.AST] = node.orelse
    else:
        yield node
        children = ast.iter_child_nodes(node)
    for child in children:
        yield from _executed(child)


def outside(modules: Mapping[str, Path]) -> set[str]:
    """Top-level names of libraries that modules import; these as `closure` gives them."""
    names = {
        imported.partition(".")[0]
        for name, path in modules.items()
        for imported in _imports_of(name, path)
    }
    return {name for name in names if _is_library(name)}


def _is_library(name: str) -> bool:
    python = name in sys.stdlib_module_names or name == "__main__"
    return name.isidentifier() and not python


def homes(modules: Iterable[str]) -> set[Path]:
    """Folders of modules whose code may change without a new version: this package, loose files.

    The modules, given by their full names, are loaded.
    """
    found = {HOME}
    for name in {module.partition(".")[0] for module in modules}:
        if _is_library(name) and not _owners(name):
            file = getattr(sys.modules.get(name), "__file__", None)
            if file:
                folder = Path(file).parent
                found.add(folder.parent if Path(file).name == "__init__.py" else folder)
    return found


def versions(names: Iterable[str]) -> dict[str, str]:
    """Installed version by distribution of libraries and of all that they require.

    Parameters
    ----------
    names
        Top-level names as they are imported, e.g. ``"numpy"``; modules that no installed
        distribution owns are passed over.
    """
    found: dict[str, str] = {}
    waiting = [owner for name in names if _is_library(name) for owner in _owners(name)]
    while waiting:
        name = _normalised(waiting.pop())
        version, requires = _installed(name)
        if version and name not in found and name != "attsvm":
            found[name] = version
            waiting += requires
    return dict(sorted(found.items()))


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _owners(name: str) -> list[str]:
    if _installed(_normalised(name))[0]:
        return [name]
    return _packages().get(name, [])


@functools.cache
def _packages() -> Mapping[str, list[str]]:
    # Reads the metadata of all that is installed: only for names that are no distribution's own.
    return importlib.metadata.packages_distributions()


@functools.cache
def _installed(name: str) -> tuple[str, tuple[str, ...]]:
    """Version of a distribution, and what it requires without being asked for extras."""
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return "", ()
    needed = []
    for text in distribution.requires or ():
        match = _REQUIREMENT.match(text)
        # Whether a marker holds need not be known: what it names is installed, or it is not.
        if match and "extra ==" not in match[2]:
            needed.append(match[1])
    return distribution.version, tuple(needed)
