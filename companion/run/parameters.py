"""The parameters of a chapter: what they mean, which values they take, and the check of a value.

Everything is read from the notebook.  The parameters cell has a line for each,

    d = 10  # dimension of a token; at least max(T - 1, n); full scale: 20

whose comment says the meaning, then the bounds: ``at least``, ``above``, ``at most`` or ``below`` a
number or an expression of other parameters.  What such words cannot say stands in the notebook's
``metadata.attsvm.range``, e.g. ``{"widths": {"includes": [1, 2, 4], "at_least": 1}}``.

papermill's ``inspect_notebook`` is no help here: it loses the comment of a value in parentheses,
takes the ``#`` of a text for a comment, gives values as text, and costs a second of import.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import io
import math
import re
import tokenize
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attsvm.errors import ArgumentError
from companion.build.chapters import Chapter
from companion.build.normalise import assigned, source_of
from companion.errors import ChapterError

__all__ = ["Parameter", "assignments", "check", "parameters_of", "parse", "read_file", "shown",
           "slug"]  # fmt: skip

# How each limit reads, and whether the entries of a value keep to it.
LIMITS: dict[str, tuple[str, Callable[[list[Any], Any], bool]]] = {
    "at_least": ("at least {}", lambda entries, bound: min(entries) >= bound),
    "above": ("above {}", lambda entries, bound: min(entries) > bound),
    "at_most": ("at most {}", lambda entries, bound: max(entries) <= bound),
    "below": ("below {}", lambda entries, bound: max(entries) < bound),
    "one_at_least": ("one at least {}", lambda entries, bound: max(entries) >= bound),
    "includes": ("with {} among them", lambda entries, some: set(some) <= set(entries)),
    "length": ("{} of them", lambda entries, length: len(entries) == length),
    "ascending": ("ascending", lambda entries, wanted: not wanted or entries == sorted(entries)),
}
# A bound; after a comma that stands in no parentheses "ascending", or the reason.
CLAUSE = re.compile(
    r"(?:each )?(one at least|at least|above|at most|below) (.+?)(?:, (?![^()]*\))(.*))?"
)
KINDS = {bool: "True or False", int: "a whole number", float: "a number", str: "a text"}
ARITHMETIC = (ast.Expression, ast.Constant, ast.Name, ast.Load, ast.BinOp, ast.Add, ast.Sub,
              ast.Mult, ast.Call)  # fmt: skip
"""What a bound may consist of."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a chapter: its name, its quick and its full value, what it means in words.

    Of the limits in `LIMITS` the range holds those that it has.  Bounds are numbers or expressions
    of parameters, and in a list each entry obeys them.
    """

    name: str
    default: Any
    full: Any
    meaning: str
    range: Mapping[str, Any]

    @property
    def is_list(self) -> bool:
        """Whether it takes several values at once."""
        return isinstance(self.default, list | tuple)

    @property
    def kind(self) -> type:
        """The type of a value, or of the entries of a list: bool, int, float or str."""
        kinds = {type(entry) for entry in _entries(self.default)}
        return float if kinds == {int, float} else kinds.pop()

    @property
    def type(self) -> str:
        """The type in Python's words, e.g. "int" or "list of float"."""
        return f"list of {self.kind.__name__}" if self.is_list else self.kind.__name__

    @property
    def limits(self) -> str:
        """The range in words, e.g. "at least n, ascending"."""
        return ", ".join(_words(key, self.range[key]) for key in LIMITS if key in self.range)

    def standard(self, profile: str) -> Any:
        """Its value in a profile, ``"quick"`` or ``"full"``."""
        return self.full if profile == "full" else self.default


def _words(key: str, limit: Any) -> str:
    return LIMITS[key][0].format(", ".join(map(str, _entries(limit))))


def _entries(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def parameters_of(chapter: Chapter) -> list[Parameter]:
    """Read the parameters of a chapter that `chapters.validate` has let through.

    Raises
    ------
    ChapterError
        If the cell or the declared range cannot be understood.
    """
    source = source_of(chapter.parameters_cell or {})
    declared, full = chapter.declared.get("range", {}), chapter.parameters("full")
    found = []
    try:
        notes = [
            (token.start[0], token.string.lstrip("# ").strip())
            for token in tokenize.generate_tokens(io.StringIO(source).readline)
            if token.type == tokenize.COMMENT
        ]
        for name, node, statement in assigned(source):
            lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
            comment = " ".join(text for line, text in notes if line in lines)
            default = ast.literal_eval(node)
            meaning, said = _understood(comment)
            takes = _range(name, default, said | declared.get(name, {}))
            found.append(Parameter(name, default, full.get(name, default), meaning, takes))
            if default in ([], ()):
                raise ValueError(f"{name} is an empty list, whose type nobody can tell")
            if found[-1].kind not in KINDS:
                raise ValueError(f"{name} is neither a number, a text nor a list of those")
        defaults = {parameter.name: parameter.default for parameter in found}
        if unknown := set(declared) - set(defaults):
            raise ValueError(f"metadata.attsvm.range names {', '.join(sorted(unknown))}")
        for limit in (limit for parameter in found for limit in parameter.range.values()):
            _value_of(limit, defaults)
    except (ValueError, SyntaxError, AttributeError) as error:
        raise ChapterError(f"chapter {chapter.id}: its parameters: {error}") from error
    return found


def _understood(comment: str) -> tuple[str, dict[str, Any]]:
    """Meaning, and the range in the form of the metadata, from a comment."""
    meaning: list[str] = []
    said: dict[str, Any] = {}
    for clause in (part.strip() for part in comment.split(";")):
        if match := CLAUSE.fullmatch(clause):
            said[match[1].replace(" ", "_")] = match[2]
            if match[3] == "ascending":
                said["ascending"] = True
        elif not clause.startswith("full scale:"):
            meaning.append(clause)
    return "; ".join(meaning), said


def _range(name: str, default: Any, declared: Mapping[str, Any]) -> dict[str, Any]:
    """The limits as declared, and what goes without saying."""
    if unknown := set(declared) - set(LIMITS):
        raise ValueError(f"metadata.attsvm.range.{name} has the unknown key {min(unknown)}")
    limits = {
        key: _bound(limit) if isinstance(limit, str) else limit for key, limit in declared.items()
    }
    if not {"at_least", "above"} & set(limits) and all(type(e) is int for e in _entries(default)):
        # Counts of something; seeds start at 0.
        limits["at_least"] = 0 if name == "seed" else 1
    return limits


def _bound(text: str) -> float | str:
    """A number, or an expression of parameters in Python's writing."""
    plain = text.replace("−", "-").strip()
    try:
        return ast.literal_eval(plain)
    except (ValueError, SyntaxError):
        for node in ast.walk(ast.parse(plain, mode="eval")):
            allowed = isinstance(node, ARITHMETIC)
            if isinstance(node, ast.Call):
                allowed = isinstance(node.func, ast.Name) and node.func.id in ("max", "min")
            if not allowed:
                raise ValueError(f"the bound {text!r} cannot be understood") from None
        return plain


def _value_of(bound: Any, values: Mapping[str, Any]) -> Any:
    if not isinstance(bound, str):
        return bound
    try:
        # `_bound` has let nothing but arithmetic through.
        return eval(bound, {"__builtins__": {}, "max": max, "min": min}, dict(values))
    except (NameError, TypeError) as error:
        raise ValueError(f"the bound {bound!r} is not one of numbers: {error}") from error


def check(
    parameters: Iterable[Parameter], given: Mapping[str, Any], profile: str = "quick"
) -> dict[str, Any]:
    """Complete and check the values of a run: one for every parameter of the chapter.

    Parameters
    ----------
    parameters
        Those of the chapter.
    given
        Values by name, of the right type or texts that can be read as such.
    profile
        What the others take: ``"quick"`` or ``"full"``.

    Raises
    ------
    ArgumentError
        If a name is unknown, or a value has the wrong type or is out of range.
    """
    known = {parameter.name: parameter for parameter in parameters}
    for name in given:
        if name not in known:
            folded = {other.lower(): other for other in known}
            close = difflib.get_close_matches(name.lower(), folded, n=1)
            hint = f" (did you mean {folded[close[0]]}?)" if close else ""
            wanted = f"one of {', '.join(known) or 'none'}{hint}"
            raise ArgumentError("parameter", wanted, repr(name))
    values = {
        name: _typed(parameter, given[name]) if name in given else parameter.standard(profile)
        for name, parameter in known.items()
    }
    for name, parameter in known.items():
        _require_in_range(parameter, values, name in given)
    return values


def _typed(parameter: Parameter, value: Any) -> Any:
    """The value in the type of the parameter's default."""
    if not parameter.is_list:
        return _entry(parameter, value)
    if isinstance(value, str):
        value = _literal(value if value.strip().startswith(("[", "(")) else f"[{value}]")
    entries = _entries(value)
    if not entries:
        raise ArgumentError(parameter.name, f"a {parameter.type}", "an empty list")
    return type(parameter.default)(_entry(parameter, entry) for entry in entries)


def _entry(parameter: Parameter, value: Any) -> Any:
    kind = parameter.kind
    read: Any = _literal(value) if isinstance(value, str) and kind is not str else value
    if kind is float and type(read) is int:
        read = float(read)
    if type(read) is not kind:
        raise ArgumentError(parameter.name, KINDS[kind], str(value))
    if isinstance(read, float) and not math.isfinite(read):
        raise ArgumentError(parameter.name, "a finite number", str(value))
    return read


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return text  # a word; whoever expects a number says so


def _require_in_range(parameter: Parameter, values: Mapping[str, Any], given: bool) -> None:
    value = values[parameter.name]
    entries = _entries(value)
    of_list = "entries, " if parameter.is_list else ""
    for key, limit in parameter.range.items():
        bound = _value_of(limit, values)
        # The book's own values may leave out some that a reader's should have.
        if (given or key != "includes") and not LIMITS[key][1](entries, bound):
            equal = f" = {bound}" if isinstance(limit, str) else ""
            words = f"{of_list}{_words(key, limit)}{equal}"
            raise ArgumentError(parameter.name, words, shown(value))
    if parameter.is_list and len(set(entries)) < len(entries):
        raise ArgumentError(parameter.name, "each entry once", shown(value))


def shown(value: Any) -> str:
    """A value as the command line takes it."""
    return ",".join(map(str, _entries(value)))


def slug(values: Mapping[str, Any]) -> str:
    """Values as the name of a folder, e.g. "d-20_n-3"; empty for none."""
    words = [f"{name}-{shown(value)}" for name, value in values.items()]
    text = "_".join(re.sub(r"[^\w.+-]+", "-", word).strip("-") for word in words)
    if len(text) > 80:
        digest = hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest()
        return f"{text[:64]}-{digest[:8]}"
    return text


def assignments(texts: Iterable[str]) -> dict[str, str]:
    """Split the ``NAME=VALUE`` of the command line."""
    found: dict[str, str] = {}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not sign or not name or not value:
            raise ArgumentError("-p", "NAME=VALUE", repr(text))
        if name in found:
            raise ArgumentError("-p", "each name once", f"{name} twice")
        found[name] = value
    return found


def parse(parameter: Parameter, text: str) -> list[str]:
    """The values of a grid in a text of the command line, separated by commas.

    Where the parameter is a list itself, semicolons separate them.
    """
    parts = [part.strip() for part in text.split(";" if parameter.is_list else ",")]
    if not all(parts):
        raise ArgumentError(parameter.name, "values, separated by commas", repr(text))
    return parts


def read_file(path: str | Path) -> dict[str, Any]:
    """Read parameters from a YAML or JSON file."""
    import yaml

    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ArgumentError("params", "a readable file", f"{path} ({error.strerror})") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise ArgumentError("params", "a YAML or JSON file", f"{path}: {reason}") from error
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise ArgumentError("params", "a file that maps names to values", str(path))
    return content
