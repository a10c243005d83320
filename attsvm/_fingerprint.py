"""A fingerprint of a function: its code and the values it uses, for keys of caches.

Two functions with the same fingerprint compute the same from the same arguments, given the same
package source (which the caller adds to the key).  Notebook functions read their parameters from
globals, so these count.
"""

from __future__ import annotations

import dataclasses
import dis
import enum
import functools
import hashlib
import pathlib
import types
from typing import Any

import numpy as np

from attsvm.errors import ArgumentError

__all__ = ["fingerprint"]

_PLAIN = (bool, int, float, complex, str, bytes, slice, pathlib.PurePath)


def fingerprint(function: Any) -> str:
    """Hash of a function's bytecode, constants, defaults, closure and the globals it names.

    Raises
    ------
    ArgumentError
        If it depends on a value that has no stable fingerprint (an open file, a generator, …).
    """
    digest = hashlib.sha256()
    # A functools.partial has no name.
    _add(digest, function, getattr(function, "__name__", "the experiment"), set())
    return digest.hexdigest()


def _add(digest: Any, value: Any, name: str, seen: set[int]) -> None:
    """Feed one value, with its kind, into the digest."""
    digest.update(f"<{type(value).__name__}>".encode())
    if value is None or value is ... or isinstance(value, _PLAIN):
        digest.update(repr(value).encode())
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, np.generic):
        digest.update(repr(value.item()).encode())
    elif isinstance(value, range):
        digest.update(repr(value).encode())
    elif isinstance(value, tuple | list):
        for i, item in enumerate(value):
            _add(digest, item, f"{name}[{i}]", seen)
    elif isinstance(value, set | frozenset):
        for item in sorted(value, key=repr):
            _add(digest, item, name, seen)
    elif isinstance(value, dict):
        for key in sorted(value, key=repr):
            _add(digest, key, name, seen)
            _add(digest, value[key], f"{name}[{key!r}]", seen)
    elif isinstance(value, types.ModuleType):
        digest.update(value.__name__.encode())
    elif isinstance(value, type):
        _add_class(digest, value, seen)
    elif isinstance(value, types.BuiltinFunctionType):
        digest.update(f"{value.__module__}.{value.__qualname__}".encode())
    elif isinstance(value, functools.partial):
        for part in (value.func, value.args, value.keywords):
            _add(digest, part, name, seen)
    elif isinstance(value, types.FunctionType):
        _add_function(digest, value, name, seen)
    elif isinstance(value, staticmethod | classmethod):
        _add(digest, value.__func__, name, seen)
    elif isinstance(value, property):
        for accessor in (value.fget, value.fset, value.fdel):
            _add(digest, accessor, name, seen)
    elif isinstance(value, enum.Enum):
        digest.update(f"{type(value).__qualname__}.{value.name}".encode())
    elif dataclasses.is_dataclass(value):
        _add(digest, type(value), name, seen)
        for entry in dataclasses.fields(value):
            _add(digest, getattr(value, entry.name), f"{name}.{entry.name}", seen)
    elif type(value).__module__.split(".")[0] == "pandas" and hasattr(value, "to_dict"):
        # A table or one column of it.
        columns = value.reset_index()
        for column in columns:
            _add(digest, str(column), name, seen)
            _add(digest, columns[column].to_numpy().tolist(), f"{name}[{column!r}]", seen)
    else:
        raise ArgumentError(
            name, "plain data, an array, a function or a module", f"a {type(value).__name__}"
        )


def _add_class(digest: Any, value: type, seen: set[int]) -> None:
    """A class of a library by its name, one of the notebook by its code too."""
    digest.update(f"{value.__module__}.{value.__qualname__}".encode())
    if value.__module__ != "__main__" or id(value) in seen:
        return
    seen.add(id(value))
    for base in value.__bases__:
        _add_class(digest, base, seen)
    for name, part in sorted(vars(value).items()):
        if not (name.startswith("__") and not callable(part)):
            digest.update(name.encode())
            _add(digest, part, f"{value.__name__}.{name}", seen)


def _add_function(digest: Any, function: types.FunctionType, name: str, seen: set[int]) -> None:
    if id(function) in seen:  # recursion: its code is in the digest already
        return
    seen.add(id(function))
    module = function.__module__ or ""
    if module.split(".")[0] != "__main__" and not module.startswith("test"):
        # A library's function: named, and pinned by the versions in the caller's key.
        digest.update(f"{module}.{function.__qualname__}".encode())
        return
    for code in _codes(function.__code__):
        digest.update(code.co_code)
        for constant in code.co_consts:
            if not isinstance(constant, types.CodeType):
                _add(digest, constant, name, seen)
        digest.update(repr((code.co_names, code.co_varnames)).encode())
        # co_names holds attributes too; only names that are looked up as globals count.
        named = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
        for used in sorted(named):
            if used in function.__globals__:
                _add(digest, function.__globals__[used], used, seen)
    _add(digest, function.__defaults__, name, seen)
    _add(digest, function.__kwdefaults__, name, seen)
    free = function.__code__.co_freevars
    for variable, cell in zip(free, function.__closure__ or (), strict=True):
        _add(digest, cell.cell_contents, variable, seen)


def _codes(code: types.CodeType) -> list[types.CodeType]:
    """A code object and those nested in it (comprehensions, lambdas, inner functions)."""
    result = [code]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            result += _codes(constant)
    return result
