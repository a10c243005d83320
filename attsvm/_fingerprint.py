"""A fingerprint of a function: its code and the values it uses, for keys of caches.

Two functions with the same fingerprint compute the same from the same arguments, given the same
libraries; which those are comes with it.  Notebook functions read their parameters from globals, so
these count.
"""

from __future__ import annotations

import dataclasses
import dis
import enum
import functools
import hashlib
import pathlib
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from attsvm.errors import ArgumentError

__all__ = ["Fingerprint", "fingerprint"]

_PLAIN = (
    types.NoneType, types.EllipsisType, bool, int, float, complex, str, bytes, slice, range,
    pathlib.PurePath,
)  # fmt: skip


class Fingerprint(NamedTuple):
    """Hash of a function's code and values, and the modules of what it uses, by full name."""

    digest: str
    modules: frozenset[str]


def fingerprint(function: Any) -> Fingerprint:
    """The fingerprint of a function of a notebook, a test or a library, or a partial of one.

    Raises
    ------
    ArgumentError
        If it depends on a value that has no stable fingerprint (an open file, a generator, …).
    """
    sink = _Sink()
    # A functools.partial has no name.
    _add(sink, function, getattr(function, "__name__", "the experiment"))
    return Fingerprint(sink.hash.hexdigest(), frozenset(sink.modules))


class _Sink:
    """Takes what determines a function: text, modules, and the objects that were seen."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.modules: set[str] = set()
        self.seen: set[int] = set()

    def update(self, content: str | bytes) -> None:
        self.hash.update(content.encode() if isinstance(content, str) else content)

    def named(self, module: str | None, name: str) -> None:
        """Something of a library, which its module and version determine."""
        self.update(f"{module}.{name}")
        self.modules.add(module or "")


def _add(sink: _Sink, value: Any, name: str) -> None:
    """Feed one value, with its kind, into the digest."""
    sink.update(f"<{type(value).__name__}>")
    if isinstance(value, _PLAIN):
        sink.update(repr(value))
    elif isinstance(value, np.ndarray):
        sink.update(f"{value.dtype.str}{value.shape}")
        sink.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, types.ModuleType):
        sink.named(value.__name__, "")
        # A package may load its modules when they are first used.
        sink.modules |= {f"{value.__name__}.{name}" for name in getattr(value, "__all__", ())}
    elif isinstance(value, type):
        _add_class(sink, value)
    elif isinstance(value, types.BuiltinFunctionType):
        sink.named(value.__module__, value.__qualname__)
    elif isinstance(value, types.FunctionType):
        _add_function(sink, value, name)
    elif isinstance(value, enum.Enum):
        sink.named(type(value).__module__, f"{type(value).__qualname__}.{value.name}")
    else:
        parts = _parts(value)
        if parts is None:
            expected = "plain data, an array, a function or a module"
            raise ArgumentError(name, expected, f"a {type(value).__name__}")
        for place, part in parts:
            _add(sink, part, name + place)


def _parts(value: Any) -> list[tuple[str, Any]] | None:
    """What a value is made of, each with its place in it; None if nobody knows."""
    if isinstance(value, np.generic):
        return [("", value.item())]
    if isinstance(value, tuple | list):
        return [(f"[{i}]", item) for i, item in enumerate(value)]
    if isinstance(value, set | frozenset):
        return [("", item) for item in sorted(value, key=repr)]
    if isinstance(value, dict):
        keys = sorted(value, key=repr)
        return [("", keys), *((f"[{key!r}]", value[key]) for key in keys)]
    if isinstance(value, functools.partial):
        return [("", part) for part in (value.func, value.args, value.keywords)]
    if isinstance(value, staticmethod | classmethod):
        return [("", value.__func__)]
    if isinstance(value, property):
        return [("", accessor) for accessor in (value.fget, value.fset, value.fdel)]
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        return [("", type(value)), *((f".{name}", getattr(value, name)) for name in names)]
    if type(value).__module__.split(".")[0] == "pandas" and hasattr(value, "to_dict"):
        # A table or one column of it.
        columns = value.reset_index()
        return [(f"[{name!r}]", [str(name), columns[name].to_numpy().tolist()]) for name in columns]
    return None


def _add_class(sink: _Sink, value: type) -> None:
    """A class of a library by its name, one of the notebook by its code too."""
    sink.named(value.__module__, value.__qualname__)
    if value.__module__ != "__main__" or id(value) in sink.seen:
        return
    sink.seen.add(id(value))
    for base in value.__bases__:
        _add_class(sink, base)
    for name, part in sorted(vars(value).items()):
        if not (name.startswith("__") and not callable(part)):
            sink.update(name)
            _add(sink, part, f"{value.__name__}.{name}")


def _add_function(sink: _Sink, function: types.FunctionType, name: str) -> None:
    if id(function) in sink.seen:  # recursion: its code is in the digest already
        return
    sink.seen.add(id(function))
    module = function.__module__ or ""
    if module.split(".")[0] != "__main__" and not module.startswith("test"):
        sink.named(module, function.__qualname__)
        return
    for code in _codes(function.__code__):
        sink.update(code.co_code)
        for constant in code.co_consts:
            if not isinstance(constant, types.CodeType):
                _add(sink, constant, name)
        sink.update(repr((code.co_names, code.co_varnames)))
        sink.modules |= _imported(code)
        # co_names holds attributes too; only names that are looked up as globals count.
        named = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
        for used in sorted(named):
            if used in function.__globals__:
                _add(sink, function.__globals__[used], used)
    _add(sink, (function.__defaults__, function.__kwdefaults__), name)
    free = function.__code__.co_freevars
    for variable, cell in zip(free, function.__closure__ or (), strict=True):
        _add(sink, cell.cell_contents, variable)


def _imported(code: types.CodeType) -> set[str]:
    """Modules that import statements within a function may name."""
    found, base = set(), ""
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            base = instruction.argval
            found.add(base)
        elif instruction.opname == "IMPORT_FROM":
            found.add(f"{base}.{instruction.argval}")
    return found


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and those nested in it (comprehensions, lambdas, inner functions)."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)
