"""Publishing: a figure in all its forms, with passport, ledger and alt text."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attsvm import records
from attsvm.errors import ArgumentError
from attsvm.figures._instances import script
from attsvm.figures._style import PALETTE
from attsvm.selection import Ledger

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_COORDINATES = re.compile(r' (?:d|x|y|x1|x2|y1|y2|points)="[^"]*"')
_DECIMALS = re.compile(r"-?\d+\.\d{3,}")
_SHORTEST_ALT = 60  # a sentence that states a finding is longer than this


def _svg(figure: Figure, name: str) -> str:
    import matplotlib as mpl

    buffer = io.StringIO()
    # A fixed salt and no date: the same figure gives the same bytes.
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return _COORDINATES.sub(_rounded, buffer.getvalue())


def _rounded(attribute: re.Match[str]) -> str:
    """Coordinates to a hundredth of a point: no eye sees more, and the file halves."""
    return _DECIMALS.sub(lambda number: f"{float(number.group()):.2f}", attribute.group())


def _darkened(svg: str) -> str:
    """The same drawing with each colour of the palette replaced by its partner for dark pages."""
    partner = {light: dark for light, dark in PALETTE.values()}
    # White and black come from matplotlib's defaults (marker edges); they swap roles.
    partner |= {"#ffffff": "#15181c", "#000000": "#e8e6e3"}
    return re.sub(r"#[0-9a-fA-F]{6}\b", lambda m: partner.get(m.group().lower(), m.group()), svg)


def _raster(figure: Figure, format: str) -> bytes:
    buffer = io.BytesIO()
    metadata = {"CreationDate": None} if format == "pdf" else {"Software": None}
    figure.savefig(
        buffer, format=format, dpi=200, facecolor="white", transparent=False, metadata=metadata
    )
    return buffer.getvalue()


def publish(
    figure: Figure,
    name: str,
    data: pd.DataFrame,
    *,
    title: str,
    alt: str,
    caption: str,
    ledger: Ledger,
    parameters: Mapping[str, Any],
    seeds: str,
    solvers: Mapping[str, str] | None = None,
    tolerances: Mapping[str, float] | None = None,
    instances: Mapping[str, Any] | None = None,
) -> None:
    """Write a figure in all its forms and show it.

    Files go to ``figures/`` in the output folder: ``name.svg``, ``name-dark.svg``, ``name.pdf``,
    ``name.png``, ``name.csv`` and the record ``name.json``; with `instances`, ``name.data.js`` too.

    Parameters
    ----------
    figure
        Drawn in the book's style (`grid`), with colours from `COLOURS`.
    name
        File name: lower case, words joined by hyphens.
    data
        Exactly the numbers drawn, tidy.
    title
        The finding in a few words.
    alt
        What a reader who cannot see the figure must know: the finding, with its numbers.
    caption
        What is drawn, and how to read it.
    ledger
        What became of every draw.
    parameters
        Sizes, steps, iterations: with the seeds enough to get the same figure again.
    seeds
        The seeds.
    solvers, tolerances
        Which solvers were used, and the tolerances that decide something.
    instances
        Single instances that a reader may look at, from `figures.instances`.

    Raises
    ------
    ArgumentError
        If the name is no file name, the alt text says too little, or there is no data.
    AttsvmError
        If the output folder cannot be written to.
    """
    if not _NAME.fullmatch(name):
        raise ArgumentError("name", "lower-case words joined by hyphens", repr(name))
    if len(alt.strip()) < _SHORTEST_ALT:
        raise ArgumentError("alt", "a sentence that states the finding", repr(alt))
    if data.empty:
        raise ArgumentError("data", "the numbers drawn", "an empty table")
    where = records.context()
    folder = where.output / "figures"
    svg = _svg(figure, name)
    contents = {
        "svg": (f"{name}.svg", svg.encode()),
        "dark": (f"{name}-dark.svg", _darkened(svg).encode()),
        "pdf": (f"{name}.pdf", _raster(figure, "pdf")),
        "png": (f"{name}.png", _raster(figure, "png")),
        "csv": (f"{name}.csv", data.to_csv(index=False, lineterminator="\n").encode()),
    }
    if instances is not None:
        contents["instances"] = (f"{name}.data.js", script(name, instances))
    for file, content in contents.values():
        records.write_bytes(folder / file, content)
    record = {
        "name": name,
        "title": title,
        "alt": " ".join(alt.split()),
        "caption": " ".join(caption.split()),
        "chapter": where.chapter,
        "files": {kind: f"figures/{file}" for kind, (file, _) in contents.items()},
        "ledger": ledger.as_record(),
        "passport": {
            "parameters": {key: _plain(value) for key, value in parameters.items()},
            "seeds": seeds,
            "solvers": dict(solvers or {}),
            "tolerances": dict(tolerances or {}),
            "versions": records.versions(),
            "commit": where.commit,
            "profile": where.profile,
        },
    }
    records.write_json(folder / f"{name}.json", record)
    records.display(
        {
            "application/vnd.attsvm.figure+json": record,
            "image/svg+xml": svg,
            "text/plain": f"{title}\n{record['alt']}\n{ledger}",
        }
    )


def _plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | range | tuple):
        return [_plain(item) for item in value]
    return value
