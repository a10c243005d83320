"""The parameters of a chapter: what they mean, which values they take, and the check of a value.

Everything is read from the notebook.  The parameters cell has a line for each,

    d = 10  # dimension of a token; at least max(T - 1, n); full scale: 20

whose comment says the meaning, then the bounds: ``at least``, ``above``, ``at most`` or ``below`` a
number or an expression of other parameters.  What such words cannot say stands in the notebook's
``metadata.attsvm.range``, e.g. ``{"widths": {"includes": [1, 2, 4], "at_least": 1}}``.
"""

from __future__ import annotations

import ast
import difflib
import io
import math
import re
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attsvm.errors import ArgumentError
from companion.build.chapters import Chapter, source_of
from companion.build.normalise import assigned
from companion.errors import ChapterError

__all__ = [
    "Parameter",
    "Range",
    "assignments",
    "check",
    "parameters_of",
    "parse",
    "read_file",
    "shown",
]

_BOUNDS = {"at_least": "at least", "above": "above", "at_most": "at most", "below": "below"}
_CLAUSE = re.compile(r"^(?:each )?(at least|above|at most|below) (.+)$")
_ONE = re.compile(r"^one at least (.+)$")
_FULL = re.compile(r"^full scale:")
_HOLDS = {
    "at_least": lambda value, bound: value >= bound,
    "above": lambda value, bound: value > bound,
    "at_most": lambda value, bound: value <= bound,
    "below": lambda value, bound: value < bound,
}


@dataclass(frozen=True)
class Range:
    """Which values of its type a parameter takes.

    Attributes
    ----------
    bounds
        Of "at_least", "above", "at_most", "below": a number, or an expression of parameters.  In a
        list each entry obeys them.
    includes
        Entries that a list must have.
    one_at_least
        What the largest entry of a list must reach, a number or an expression; None: anything.
    length
        How many entries a list must have; None: any number but 0.
    ascending
        Whether the entries of a list must rise.
    """

    bounds: Mapping[str, float | str]
    includes: tuple[Any, ...] = ()
    one_at_least: float | str | None = None
    length: int | None = None
    ascending: bool = False

    def __str__(self) -> str:
        words = [f"{_BOUNDS[name]} {bound}" for name, bound in self.bounds.items()]
        if self.one_at_least is not None:
            words.append(f"one at least {self.one_at_least}")
        if self.includes:
            words.append(f"with {', '.join(map(str, self.includes))} among them")
        if self.length is not None:
            words.append(f"{self.length} of them")
        if self.ascending:
            words.append("ascending")
        return ", ".join(words)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a chapter.

    Attributes
    ----------
    name
        As the cell assigns it.
    default
        The quick value.
    full
        The value at full scale.
    meaning
        In words, from the comment.
    range
        The values it takes.
    """

    name: str
    default: Any
    full: Any
    meaning: str
    range: Range

    @property
    def is_list(self) -> bool:
        """Whether it takes several values at once."""
        return isinstance(self.default, list | tuple)

    @property
    def kind(self) -> type:
        """The type of a value, or of the entries of a list: bool, int, float or str."""
        entries = list(self.default) if self.is_list else [self.default]
        kinds = {type(entry) for entry in entries}
        return float if kinds == {int, float} else kinds.pop()

    @property
    def type(self) -> str:
        """The type in Python's words, e.g. "int" or "list of float"."""
        return f"list of {self.kind.__name__}" if self.is_list else self.kind.__name__


def parameters_of(chapter: Chapter) -> list[Parameter]:
    """Read the parameters of a chapter.

    Raises
    ------
    ChapterError
        If the cell or the declared range cannot be understood.
    """
    cell = chapter.parameters_cell
    if cell is None:
        raise ChapterError(f"chapter {chapter.id}: no code cell is tagged 'parameters'")
    source = source_of(cell)
    declared = chapter.declared.get("range", {})
    full = chapter.parameters("full")
    found = []
    try:
        comments = _comments(source)
        # `chapters` refuses whatever is no assignment.
        for name, node, _ in assigned(source):
            default = ast.literal_eval(node)
            meaning, said = _understood(comments.get(name, ""))
            limits = _range(name, default, said | declared.get(name, {}))
            found.append(Parameter(name, default, full.get(name, default), meaning, limits))
        unknown = sorted(set(declared) - {parameter.name for parameter in found})
        if unknown:
            raise ValueError(f"metadata.attsvm.range names {', '.join(unknown)}")
        _check_kinds(found)
    except (ValueError, SyntaxError, AttributeError) as error:
        raise ChapterError(f"chapter {chapter.id}: its parameters: {error}") from error
    return found


def _check_kinds(found: list[Parameter]) -> None:
    for parameter in found:
        if parameter.is_list and not parameter.default:
            raise ValueError(f"{parameter.name} is an empty list, whose type nobody can tell")
        if parameter.kind not in (bool, int, float, str):
            raise ValueError(f"{parameter.name} is neither a number, a text nor a list of those")


def _comments(source: str) -> dict[str, str]:
    """The comment that belongs to each assignment: the first one from its line on."""
    found: dict[str, str] = {}
    notes = [
        (token.start[0], token.string.lstrip("# ").strip())
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    ]
    for name, _, statement in assigned(source):
        last = statement.end_lineno or statement.lineno
        own = [text for line, text in notes if statement.lineno <= line <= last]
        found[name] = " ".join(own)
    return found


def _understood(comment: str) -> tuple[str, dict[str, Any]]:
    """Meaning, and the range in the form of the metadata, from a comment."""
    meaning: list[str] = []
    said: dict[str, Any] = {}
    names = {words: name for name, words in _BOUNDS.items()}
    for clause in (part.strip() for part in comment.split(";")):
        match = _CLAUSE.match(clause)
        if match:
            bound, rest = _first(match[2])
            said[names[match[1]]] = bound
            # "at least 0, ascending"; other words after a comma give the reason.
            if rest == "ascending":
                said["ascending"] = True
        elif one := _ONE.match(clause):
            said["one_at_least"] = _first(one[1])[0]
        elif not _FULL.match(clause):
            meaning.append(clause)
    return "; ".join(meaning), said


def _first(text: str) -> tuple[str, str]:
    """Split at the first comma that stands in no parentheses."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            return text[:place].strip(), text[place + 1 :].strip()
    return text, ""


def _bound(text: str | float) -> float | str:
    """A number, or an expression of parameters in Python's writing."""
    if not isinstance(text, str):
        return text
    plain = text.replace("−", "-").strip()
    try:
        return ast.literal_eval(plain)
    except (ValueError, SyntaxError):
        _value_of(plain, None)
        return plain


def _value_of(expression: float | str, values: Mapping[str, Any] | None) -> float:
    """Evaluate a bound; with None for values only its grammar is checked."""
    if not isinstance(expression, str):
        return expression

    def value(node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name(id=name):
                if values is None:
                    return 1
                if name not in values:
                    raise ValueError(f"the bound {expression!r} names no parameter")
                return values[name]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return value(left) + value(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return value(left) - value(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return value(left) * value(right)
            case ast.Call(func=ast.Name(id="max" | "min" as name), args=[_, *_] as arguments):
                several = [value(argument) for argument in arguments]
                return max(several) if name == "max" else min(several)
        raise ValueError(f"the bound {expression!r} cannot be understood")

    return value(ast.parse(expression, mode="eval").body)


def _range(name: str, default: Any, declared: Mapping[str, Any]) -> Range:
    """The range as declared, and what goes without saying."""
    unknown = set(declared) - {*_BOUNDS, "includes", "one_at_least", "length", "ascending"}
    if unknown:
        raise ValueError(f"metadata.attsvm.range.{name} has the unknown key {min(unknown)}")
    bounds = {key: _bound(declared[key]) for key in _BOUNDS if key in declared}
    entries = list(default) if isinstance(default, list | tuple) else [default]
    counts = all(isinstance(entry, int) and not isinstance(entry, bool) for entry in entries)
    if counts and not {"at_least", "above"} & set(bounds):
        # Counts of something; seeds start at 0.
        bounds["at_least"] = 0 if name == "seed" else 1
    return Range(
        bounds,
        tuple(declared.get("includes", ())),
        _bound(declared["one_at_least"]) if "one_at_least" in declared else None,
        declared.get("length"),
        bool(declared.get("ascending", False)),
    )


def check(
    parameters: Iterable[Parameter], given: Mapping[str, Any], profile: str = "quick"
) -> dict[str, Any]:
    """Complete and check the values of a run.

    Parameters
    ----------
    parameters
        Those of the chapter.
    given
        Values by name, of the right type or texts that can be read as such.
    profile
        What the others take: ``"quick"`` or ``"full"``.

    Returns
    -------
    dict
        A value for every parameter.

    Raises
    ------
    ArgumentError
        If a name is unknown, or a value has the wrong type or is out of range.
    """
    known = {parameter.name: parameter for parameter in parameters}
    for name in given:
        if name not in known:
            raise ArgumentError("parameter", _one_of(name, known), repr(name))
    values = {
        name: _typed(parameter, given[name])
        if name in given
        else (parameter.full if profile == "full" else parameter.default)
        for name, parameter in known.items()
    }
    for name, parameter in known.items():
        _require_in_range(parameter, values[name], values, given)
    return values


def _one_of(name: str, known: Iterable[str]) -> str:
    names = list(known)
    folded = {other.lower(): other for other in names}
    close = [folded[hit] for hit in difflib.get_close_matches(name.lower(), folded, n=1)]
    hint = f" (did you mean {close[0]}?)" if close else ""
    return f"one of {', '.join(names) or 'none'}{hint}"


def _typed(parameter: Parameter, value: Any) -> Any:
    """The value in the type of the parameter's default."""
    if not parameter.is_list:
        return _entry(parameter, value)
    if isinstance(value, str):
        value = _literal(f"[{value}]") if not value.strip().startswith(("[", "(")) else (
            _literal(value)
        )  # fmt: skip
    if not isinstance(value, list | tuple):
        value = [value]
    if not value:
        raise ArgumentError(parameter.name, f"a {parameter.type}", "an empty list")
    return type(parameter.default)(_entry(parameter, entry) for entry in value)


def _entry(parameter: Parameter, value: Any) -> Any:
    kind = parameter.kind
    read: Any = _literal(value) if isinstance(value, str) and kind is not str else value
    if kind is float and isinstance(read, int) and not isinstance(read, bool):
        read = float(read)
    words = {bool: "True or False", int: "a whole number", float: "a number", str: "a text"}
    if type(read) is not kind:
        raise ArgumentError(parameter.name, words[kind], _shown(value))
    if isinstance(read, float) and not math.isfinite(read):
        raise ArgumentError(parameter.name, "a finite number", _shown(value))
    return read


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return text  # a word; whoever expects a number says so


def _require_in_range(
    parameter: Parameter, value: Any, values: Mapping[str, Any], given: Mapping[str, Any]
) -> None:
    entries = list(value) if parameter.is_list else [value]
    limits = parameter.range
    for key, expression in limits.bounds.items():
        bound = _value_of(expression, values)
        for entry in entries:
            if not _HOLDS[key](entry, bound):
                words = f"{'entries ' if parameter.is_list else ''}{_BOUNDS[key]} {expression}"
                equal = f" = {bound}" if isinstance(expression, str) else ""
                raise ArgumentError(parameter.name, words + equal, str(entry))
    if limits.one_at_least is not None:
        bound = _value_of(limits.one_at_least, values)
        if not any(entry >= bound for entry in entries):
            raise ArgumentError(parameter.name, f"one entry at least {bound}", shown(value))
    lost = [entry for entry in limits.includes if entry not in entries]
    if lost and parameter.name in given:
        wanted = ", ".join(map(str, limits.includes))
        raise ArgumentError(parameter.name, f"a list with {wanted} among its entries", str(value))
    if limits.length is not None and len(entries) != limits.length:
        raise ArgumentError(parameter.name, f"{limits.length} entries", str(value))
    if parameter.is_list and len(set(entries)) < len(entries):
        raise ArgumentError(parameter.name, "each entry once", str(value))
    if limits.ascending and entries != sorted(entries):
        raise ArgumentError(parameter.name, "ascending entries", str(value))


def shown(value: Any) -> str:
    """A value as the command line takes it."""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def assignments(texts: Iterable[str]) -> dict[str, str]:
    """Split the ``NAME=VALUE`` of the command line.

    Raises
    ------
    ArgumentError
        If one has no ``=``, no name, no value, or a name comes twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not sign or not name or not value:
            raise ArgumentError("-p", "NAME=VALUE", repr(text))
        if name in found:
            raise ArgumentError("-p", "each name once", f"{name} twice")
        found[name] = value
    return found


def parse(parameter: Parameter, text: str) -> list[Any]:
    """The values of a grid that stand in one text of the command line.

    Commas separate them; where the parameter is a list itself, semicolons do.

    Raises
    ------
    ArgumentError
        If a value is empty.
    """
    parts = [part.strip() for part in text.split(";" if parameter.is_list else ",")]
    if not all(parts):
        raise ArgumentError(parameter.name, "values, separated by commas", repr(text))
    return list(parts)


def read_file(path: str | Path) -> dict[str, Any]:
    """Read parameters from a YAML or JSON file.

    Raises
    ------
    ArgumentError
        If it cannot be read or does not map names to values.
    """
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
