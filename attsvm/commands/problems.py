"""Problems of the user's own: reading them from a file, and writing what was found.

No command of its own; `attsvm solve` and `attsvm train` share it.
"""

from __future__ import annotations

import difflib
import io
import json
import math
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attsvm.errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np

    from attsvm.svm import Solution

__all__ = ["line", "listed", "read", "solution_record", "solution_report", "token_shape", "write"]

# Longer lists are cut on the screen; the files have all of it.
SHOWN = 12


def read(
    path: str, required: Sequence[str], optional: Sequence[str], unused: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Read the arrays of a problem from an ``.npz`` or a ``.json`` file.

    Parameters
    ----------
    path
        The file.  JSON: an object that maps names to nested lists.
    required, optional
        Names of the arrays.
    unused
        Names that may be there and are left out of the answer.

    Raises
    ------
    ArgumentError
        If the file cannot be read, an array is missing, unknown, or not of numbers.
    """
    import numpy as np

    file = Path(path)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ArgumentError("problem", "a readable file", f"{path} ({error.strerror})") from error
    found = _json(path, content) if file.suffix == ".json" else _npz(path, content)
    known = [*required, *optional]
    for name in found.keys() - {*known, *unused}:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise ArgumentError("problem", f"arrays {', '.join(known)}{hint}", f"one named {name}")
    for name in required:
        if name not in found:
            raise ArgumentError("problem", f"an array {name}", f"only {', '.join(found) or 'none'}")
    arrays = {}
    for name in filter(found.__contains__, known):
        try:
            arrays[name] = np.asarray(found[name])
        except ValueError as error:
            raise ArgumentError(name, "rows of equal length", "a ragged list") from error
        if arrays[name].dtype.kind not in "fiub":
            sample = next(iter(arrays[name].flat), "")
            raise ArgumentError(name, "an array of numbers", f"entries such as {str(sample)!r}")
    if "mask" in arrays and np.isin(arrays["mask"], (0, 1)).all():
        arrays["mask"] = arrays["mask"].astype(bool)
    return arrays


def _npz(path: str, content: bytes) -> dict[str, Any]:
    import numpy as np

    if content.startswith(b"\x93NUMPY"):
        raise ArgumentError("problem", "an .npz file of named arrays", f"one array, {path}")
    if not content.startswith(b"PK"):
        raise ArgumentError("problem", "an .npz or .json file", f"{path}, which is neither")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            return dict(stored)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise _unreadable(path, "an .npz or .json file of numbers", error) from error


def _json(path: str, content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError as error:
        raise _unreadable(path, "an .npz or .json file", error) from error
    if not isinstance(found, dict):
        raise ArgumentError("problem", "a JSON object of arrays", f"{path}, which holds none")
    return found


def _unreadable(path: str, expected: str, error: Exception) -> ArgumentError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return ArgumentError("problem", expected, f"{path} ({reason})")


def token_shape(arrays: Mapping[str, np.ndarray]) -> tuple[int, int, int]:
    """(n, T, d) of the array ``tokens``.

    Raises
    ------
    ArgumentError
        If it has another number of axes, or an empty one.
    """
    shape = arrays["tokens"].shape
    if len(shape) != 3 or 0 in shape:
        raise ArgumentError("tokens", "shape (n, T, d), not empty", f"shape {shape}")
    n, T, d = shape
    return n, T, d


def listed(items: Iterable[Any]) -> str:
    """A list for the screen, cut where it is long."""
    words = [str(item) for item in items]
    if len(words) > SHOWN:
        words = [*words[:SHOWN], f"… ({len(words) - SHOWN} more)"]
    return ", ".join(words)


def solution_report(solution: Solution) -> list[str]:
    """The lines that tell what became of an SVM."""
    import numpy as np

    name = {"fro": "Frobenius", "nuc": "nuclear"}[solution.norm]
    lines = [line("status", str(solution.status))]
    if solution.certificate is not None:
        weights = solution.certificate
        places = np.argwhere(weights > 0)
        order = np.argsort([-weights[i, t] for i, t in places], kind="stable")
        named = [f"token {t} of sequence {i}" for i, t in places[order]]
        return [
            *lines,
            "No W separates the selected tokens: with multipliers at these tokens the constraints",
            f"combine to zero (residual {solution.farkas_residual():.1e}).",
            line("certificate", listed(named)),
        ]
    lines += [
        line("objective", f"{solution.objective:.10g}, the {name} norm of W"),
        line("lower bound", f"{solution.bound:.10g}, from the multipliers alone"),
        line("relative gap", f"{solution.gap:.1e}"),
    ]
    constraints = int(np.isfinite(solution.margins()).sum())
    if not constraints:
        return [*lines, "There is nothing to separate: no sequence has a second token."]
    values, support = solution.singular_values(), solution.support()
    rows = [
        line("", f"sequence {i}: {', '.join(map(str, np.flatnonzero(row)))}")
        for i, row in enumerate(support)
        if row.any()
    ]
    if len(rows) > SHOWN:
        rows[SHOWN:] = [line("", f"… ({len(rows) - SHOWN} more sequences)")]
    least = f"the smallest {solution.min_margin:.10g} (at least 1)"
    return [
        *lines,
        line("margin", f"{1 / solution.objective:.10g} = 1 / objective"),
        line("constraints", f"{constraints}, {least}"),
        line("rank", f"{solution.rank()}; singular values {listed(f'{s:.4g}' for s in values)}"),
        line("support", f"{int(support.sum())} tokens with margin 1"),
        *rows,
    ]


def line(name: str, text: str) -> str:
    """A line of a report."""
    return f"  {name:<14}{text}"


def solution_record(solution: Solution) -> dict[str, Any]:
    """A solution as arrays and plain values."""
    names = ("norm", "objective", "bound", "gap", "min_margin", "W", "dual")
    record = {"status": str(solution.status)} | {name: getattr(solution, name) for name in names}
    for name in ("rank", "singular_values", "support", "margins"):
        record[name] = getattr(solution, name)()
    if solution.certificate is not None:
        record["certificate"] = solution.certificate
    return record


def write(record: Mapping[str, Any], as_json: str | None, as_npz: str | None) -> None:
    """Write numbers, texts and arrays by name, each file whole or not at all; None: no such file.

    What is not finite is null in JSON.
    """
    import numpy as np

    from attsvm import records

    if as_json:
        records.write_json(Path(as_json), _plain(dict(record)))
    if as_npz:
        buffer = io.BytesIO()
        arrays: dict[str, Any] = {name: np.asarray(value) for name, value in record.items()}
        np.savez(buffer, **arrays)
        records.write_bytes(Path(as_npz), buffer.getvalue())


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
