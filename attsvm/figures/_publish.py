"""Publishing: a figure in all its forms, with passport, ledger and alt text."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attsvm import records, svm
from attsvm.errors import ArgumentError
from attsvm.figures._instances import script
from attsvm.figures._style import PALETTE
from attsvm.selection import Ledger

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from attsvm.experiments import Outcome
    from attsvm.svm import GeneralSolution, Solution

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
    undated = {"CreationDate": None} if format == "pdf" else {"Software": None}
    white: dict[str, Any] = {"facecolor": "white", "transparent": False}
    figure.savefig(buffer, format=format, dpi=200, metadata=undated, **white)
    return buffer.getvalue()


def publish(
    figure: Figure,
    name: str,
    data: pd.DataFrame,
    *,
    title: str,
    alt: str,
    caption: str,
    parameters: str | Mapping[str, Any],
    found: Outcome | None = None,
    solutions: Iterable[Solution | GeneralSolution] = (),
    ledger: Ledger | None = None,
    seeds: str | None = None,
    solvers: Mapping[str, str] | None = None,
    tolerances: Mapping[str, float] | None = None,
    instances: Mapping[str, Any] | None = None,
) -> None:
    """Write a figure in all its forms and show it.

    Files go to ``figures/`` in the output folder: ``name.svg``, ``name-dark.svg``, ``name.pdf``,
    ``name.png``, ``name.csv`` and the record ``name.json``; with `instances`, ``name.data.js`` too.

    Parameters
    ----------
    figure, data
        Drawn in the book's style (`grid`), and exactly the numbers drawn, tidy.
    name
        File name: lower case, words joined by hyphens.
    title, alt
        The finding in a few words, and with its numbers: all that a reader who cannot see the
        figure must know.
    caption
        What is drawn, and how to read it.
    parameters
        Sizes, steps, iterations: with the seeds enough to get the same figure again.  Names in
        one text, "n T d step", of variables of the calling notebook; or names and values.
    found
        The experiment.  Ledger and seeds are its own; solvers, tolerances and the largest gap
        among the instances kept come from the solutions that it passed to `experiments.tabulate`.
    solutions
        SVM solutions that the figure shows beside those of the experiment.
    ledger, seeds
        Where there is no experiment, or its ledger is too long: what became of every draw, and the
        seeds.
    solvers, tolerances
        Further ones that the solutions cannot tell: solvers outside `attsvm.svm`, and thresholds
        that decide something.
    instances
        Single instances that a reader may look at, from `figures.instances`.

    Raises
    ------
    ArgumentError
        If the name is no file name, the alt text says too little, there is no data, no ledger, no
        seeds, or no variable with the name of a parameter.
    AttsvmError
        If the output folder cannot be written to.
    """
    if not _NAME.fullmatch(name):
        raise ArgumentError("name", "lower-case words joined by hyphens", repr(name))
    if len(alt.strip()) < _SHORTEST_ALT:
        raise ArgumentError("alt", "a sentence that states the finding", repr(alt))
    if data.empty:
        raise ArgumentError("data", "the numbers drawn", "an empty table")
    ledger = ledger or (found.ledger if found else None)
    seeds = seeds or (found.seeds if found else None)
    if ledger is None or seeds is None:
        raise ArgumentError("found", "an experiment, or a ledger and the seeds", "nothing")
    if isinstance(parameters, str):
        # The notebook that calls: its names are what a reader can change.
        names, variables = parameters.split(), sys._getframe(1).f_globals
        if lost := [each for each in names if each not in variables]:
            raise ArgumentError("parameters", "names of variables of the notebook", f"{lost}")
        parameters = {each: variables[each] for each in names}
    known, gaps = svm.passport(*([found.table] if found else []), solutions=solutions)
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
            "parameters": _plain(dict(parameters)),
            "seeds": seeds,
            "solvers": known | dict(solvers or {}),
            "tolerances": gaps | dict(tolerances or {}),
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
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, range | tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return value
