"""Make an executed notebook reproducible: what remains depends on the chapter alone.

Gone are the clock, the run and the progress bars.  What cannot be made reproducible, or was not
meant for a reader, is refused: memory addresses and warnings.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["assigned", "fold_parameters", "normalise", "objections", "source_of", "tracing_cell"]

# Tag of the cell that the rebuild adds to the notebook that is executed.
TRACE = "attsvm-trace"

# A tqdm bar: "step:  40%|████" or, when the total is unknown, "40it [00:01, 3.2it/s]".
PROGRESS = re.compile(r"\d+%\||\d+it \[|\[\d+:\d\d[,<]")
# A live widget, which is what a progress bar is in a notebook: dead without its kernel.
WIDGET = "application/vnd.jupyter.widget-view+json"
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,}")


def source_of(cell: Mapping[str, Any]) -> str:
    """The text of a cell, which the format stores as one string or as a list of lines."""
    return "".join(cell.get("source", ""))


def assigned(source: str) -> Iterator[tuple[str, ast.expr, ast.stmt]]:
    """The assignments ``name = value`` of a parameters cell: name, value, statement.

    Raises
    ------
    ValueError
        If the cell holds anything else.
    """
    for statement in ast.parse(source).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=node):
                yield name, node, statement
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as node):
                yield name, node, statement
            case _:
                text = ast.unparse(statement).splitlines()[0]
                raise ValueError(f"only lines 'name = value' may stand there, not '{text}'")


def fold_parameters(source: str, values: Mapping[str, Any]) -> str:
    """Write values into a parameters cell, leaving comments and layout as they are.

    Parameters
    ----------
    source
        Python source made of lines ``name = value  # comment``.
    values
        New value of each name that changes; anything that ``repr`` can write as a literal.

    Raises
    ------
    ValueError
        If a name is not assigned in the cell.
    """
    found = list(assigned(source))
    if missing := set(values) - {name for name, *_ in found}:
        raise ValueError(f"the parameters cell does not assign {', '.join(sorted(missing))}")
    # Offsets of the parser count bytes; editing from the end keeps the earlier ones valid.
    lines = [line.encode() for line in source.splitlines(keepends=True)]
    for name, node, _ in reversed(found):
        if name in values:
            first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
            head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
            lines[first : last + 1] = [head + repr(values[name]).encode() + tail]
    return b"".join(lines).decode()


def tracing_cell(path: Path) -> dict[str, Any]:
    """A last cell that writes the names of the modules that the kernel has loaded, as JSON."""
    source = (
        "import json, sys\n"
        f"with open({str(path)!r}, 'w', encoding='utf-8') as stream:\n"
        "    json.dump(sorted(sys.modules), stream)\n"
    )
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": TRACE,
        "metadata": {"tags": [TRACE]},
        "outputs": [],
        "source": source,
    }


def normalise(notebook: dict[str, Any]) -> dict[str, Any]:
    """Strip an executed notebook (format 4), in place, of all that differs from run to run."""
    notebook["cells"] = [
        cell for cell in notebook["cells"] if TRACE not in cell["metadata"].get("tags", ())
    ]
    for key in ("papermill", "widgets"):
        notebook["metadata"].pop(key, None)
    count = 0
    for number, cell in enumerate(notebook["cells"], start=1):
        cell["id"] = f"cell-{number:03d}"
        for key in ("papermill", "execution", "ExecuteTime"):
            cell["metadata"].pop(key, None)
        if cell["cell_type"] != "code":
            continue
        cell["source"] = source_of(cell)
        count += bool(cell["source"].strip())
        cell["execution_count"] = count if cell["source"].strip() else None
        cell["outputs"] = list(_merge(cell["outputs"]))
        for output in cell["outputs"]:
            if output["output_type"] == "execute_result":
                output["execution_count"] = count
    notebook["nbformat"], notebook["nbformat_minor"] = 4, 5
    return notebook


def _merge(outputs: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Join neighbouring pieces of one stream; where the kernel cuts it depends on the clock."""
    last: dict[str, Any] | None = None
    for output in outputs:
        if WIDGET in output.get("data", {}):
            continue  # before anything else: it must not part two pieces of a stream
        if output["output_type"] == "stream":
            if output["name"] == "stderr":
                output["text"] = _without_progress(output["text"])
                if not output["text"].strip():
                    continue  # nothing but a progress bar
            if last is not None and last.get("name") == output["name"]:
                last["text"] += output["text"]
                continue  # it has become part of the piece before
            last = output
        else:
            last = None
        yield output


def _without_progress(text: str) -> str:
    """Drop the lines that a progress bar drew; it redraws by a bare carriage return."""
    pieces = re.split(r"(?<=[\r\n])", text)
    return "".join(piece for piece in pieces if piece.strip() and not PROGRESS.search(piece))


def objections(notebook: Mapping[str, Any]) -> list[str]:
    """What must not reach a page, by cell of a normalised notebook: warnings, memory addresses."""
    found = []
    for number, cell in enumerate(notebook["cells"], start=1):
        for output in cell.get("outputs", []):
            if output["output_type"] == "stream" and output["name"] == "stderr":
                # Shown whole: a warning's first line names the file, the next says what it is.
                found.append(f"cell {number} wrote to stderr: {output['text'].strip()}")
            for text in _texts(output):
                if ADDRESS.search(text):
                    found.append(
                        f"cell {number} shows a memory address, which differs from run to run: "
                        f"{text.strip().splitlines()[0]}"
                    )
    return found


def _texts(output: Mapping[str, Any]) -> Iterator[str]:
    if output["output_type"] == "stream":
        yield output["text"]
    else:
        # Also forms that a richer one hides: the notebook itself is published beside its page.
        for kind, text in output.get("data", {}).items():
            if kind in ("text/plain", "text/html", "text/markdown") and isinstance(text, str):
                yield text
