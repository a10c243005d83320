"""One chapter with values of the reader's choice, into a folder of the reader's choice.

The folder then holds the page, the executed notebook, figures with their data, claims, a table of
the claims, and ``run.json``, which says what was run and is written last: a folder without it is
one of an unfinished run, which goes on where it was cut off.
"""

from __future__ import annotations

import copy
import csv
import hashlib
import html
import io
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attsvm import records
from attsvm.errors import ArgumentError
from companion.build import cache, schedule
from companion.build.chapters import Chapter, source_of
from companion.build.guard import exclusive
from companion.build.layout import Layout, commit
from companion.build.normalise import fold_parameters
from companion.build.progress import Progress
from companion.build.warm import starter
from companion.errors import BuildError, ChapterError
from companion.run import page
from companion.run.parameters import Parameter, shown

__all__ = ["COLUMNS", "Run", "claim_rows", "run", "slug", "write_table"]

RECORD = "run.json"
COLUMNS = ("claim", "side", "value", "halfwidth", "n", "published", "verdict", "registered")

# What a run makes, by name: whatever else lies in the folder is somebody's.
_MADE = ("figures", "claims", "claims.csv", "error.log", RECORD)


@dataclass(frozen=True)
class Run:
    """One executed chapter.

    Attributes
    ----------
    folder
        Where its results lie.
    record
        Content of ``run.json``.
    fresh
        Whether it was executed now, or found finished.
    """

    folder: Path
    record: dict[str, Any]
    fresh: bool

    @property
    def main(self) -> Path:
        """The page, or the notebook."""
        return self.folder / self.record["main"]

    @property
    def claims(self) -> list[dict[str, Any]]:
        """Records of the claims, in the order of the chapter."""
        return list(self.record["claims"])

    @property
    def changed(self) -> dict[str, Any]:
        """Values that are not those of the profile."""
        return dict(self.record["changed"])


def run(
    layout: Layout,
    chapter: Chapter,
    parameters: Sequence[Parameter],
    values: Mapping[str, Any],
    folder: Path,
    *,
    profile: str = "quick",
    to: str = "html",
    force: bool = False,
    progress: Progress | None = None,
    environment: Mapping[str, str] | None = None,
) -> Run:
    """Execute a chapter and leave its results in a folder.

    Parameters
    ----------
    layout
        Where the book lies.
    chapter
        The chapter.
    parameters
        Its parameters.
    values
        A value for each, already checked.
    folder
        Where to put the results: new, empty, or of an earlier run.
    profile
        What values are compared with to say which were changed.
    to
        ``"html"`` or ``"ipynb"``; the notebook is always there.
    force
        Execute even if the folder holds this very run.
    progress
        Told how far it is.
    environment
        Further variables for the kernel.

    Raises
    ------
    ArgumentError
        If the folder cannot be written or holds other things.
    ChapterError
        If a cell fails, naming the cell and what it said.
    """
    say = progress or Progress()
    own = Layout.of(layout.root, folder, writes=True)
    _require_ours(folder)
    standard = {p.name: p.full if profile == "full" else p.default for p in parameters}
    changed = {name: value for name, value in values.items() if value != standard[name]}
    key = repr([profile, dict(values), to])
    with exclusive(own, say.say):
        kept = None if force else _finished(layout, chapter, folder, key)
        if kept is not None:
            own.guard.unlink(missing_ok=True)
            return Run(folder, kept, fresh=False)
        for name in (*_MADE, *_pages(chapter)):
            _remove(folder / name)
        if force:
            _remove(own.chunks)
        try:
            prepared, loaded = _execute(
                layout, own, chapter, parameters, values, profile, say, environment
            )
        finally:
            _remove(own.settings)
        notes = json.loads((prepared.parent / "notes.json").read_text(encoding="utf-8"))
        record = {
            "chapter": chapter.id,
            "profile": profile,
            "parameters": dict(values),
            "changed": changed,
            "claims": _claims(chapter, prepared / "results"),
            "notes": notes,
            "commit": commit(layout.root),
            "versions": records.versions(),
            "key": key,
            "loaded": loaded,
            "components": cache.components(layout, chapter, profile, loaded),
        }
        name = chapter.name
        for kind in ("figures", "claims"):
            os.rename(prepared / "results" / kind, folder / kind)
        os.rename(prepared / "notebook.ipynb", folder / f"{name}.ipynb")
        write_table(folder / "claims.csv", [], [({}, row) for row in claim_rows(record)])
        record["main"] = f"{name}.ipynb"
        if to == "html":
            text = page.render(folder / f"{name}.ipynb", folder, _about(record), notes)
            records.write_bytes(folder / f"{name}.html", text.encode())
            record["main"] = f"{name}.html"
        record["files"] = _checksums(folder, record)
        records.write_json(folder / RECORD, record)
        for scratch in (own.work, own.logs, own.chunks):
            _remove(scratch)
        own.guard.unlink(missing_ok=True)
    return Run(folder, record, fresh=True)


def _execute(
    layout: Layout,
    own: Layout,
    chapter: Chapter,
    parameters: Sequence[Parameter],
    values: Mapping[str, Any],
    profile: str,
    progress: Progress,
    environment: Mapping[str, str] | None,
) -> tuple[Path, list[str]]:
    """Run the cells; the folder with what they left, and the modules they had loaded."""
    base = schedule.environment(own) | {
        "ATTSVM_COMMIT": commit(layout.root),
        # A reader's own cache serves; without one the chunks stay until this run is finished.
        "ATTSVM_CACHE": os.environ.get("ATTSVM_CACHE", str(own.chunks)),
    }
    # The list of fonts takes seconds to make; a build of the book has one already.
    fonts = layout.settings / "matplotlib"
    if list(fonts.glob("fontlist-*.json")):
        base["MPLCONFIGDIR"] = str(fonts)
    schedule.prepare_fonts(base)
    found: dict[str, tuple[Path, list[str]]] = {}

    def start(_: str) -> schedule.Job:
        return schedule.launch(
            own,
            _with_values(chapter, parameters, values),
            profile,
            {},
            base | dict(environment or {}),
            starter(1, {}),
            strict=False,
        )

    def finish(job: schedule.Job) -> None:
        found[job.name] = schedule.settle(job), schedule.trace(layout, job)[0]

    try:
        schedule.execute([chapter.id], start, finish, jobs=1, progress=progress)
    except ChapterError as error:
        raise _brief(error, own) from error
    return found[chapter.id]


def _with_values(
    chapter: Chapter, parameters: Sequence[Parameter], values: Mapping[str, Any]
) -> Chapter:
    """The chapter with other values in its parameters cell."""
    notebook = copy.deepcopy(chapter.notebook)
    changed = {p.name: values[p.name] for p in parameters if values[p.name] != p.default}
    other = replace(chapter, notebook=notebook)
    cell = other.parameters_cell
    if cell is not None and changed:
        cell["source"] = fold_parameters(source_of(cell), changed)
    return other


def _brief(error: ChapterError, own: Layout) -> ChapterError:
    """Cell and message; the whole traceback goes to a file."""
    log = own.output / "error.log"
    text = [line for line in error.details if not line.startswith("log: ")]
    log.write_text("\n".join([error.message, *text]) + "\n", encoding="utf-8")
    said = next((line.strip() for line in reversed(text) if line.strip()), "")
    return ChapterError(f"{error.message}: {said}", [f"the whole traceback is in {log}"])


def _claims(chapter: Chapter, results: Path) -> list[dict[str, Any]]:
    found = {}
    for path in sorted((results / "claims").glob("*.json")):
        found[path.stem] = json.loads(path.read_text(encoding="utf-8"))
    missing = [name for name in chapter.claims if name not in found]
    if missing:
        raise BuildError(f"chapter {chapter.id} did not report {', '.join(missing)}")
    return [found[name] for name in chapter.claims]


def claim_rows(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The measured numbers of a run: a row for each claim and side, columns `COLUMNS`."""
    rows = []
    for claim in record["claims"]:
        for side in ("certified", "as_published"):
            if claim[side] is None:
                continue
            rows.append(
                {
                    "claim": claim["id"],
                    "side": {"certified": "certified", "as_published": "published"}[side],
                    "value": repr(float(claim[side]["value"])),
                    "halfwidth": repr(float(claim[side]["halfwidth"])),
                    "n": claim[side]["n"],
                    "published": "" if claim["published"] is None else repr(claim["published"]),
                    "verdict": claim["verdict"],
                    "registered": claim["expected"],
                }
            )
    return rows


def slug(values: Mapping[str, Any]) -> str:
    """Values as the name of a folder, e.g. "d-20_n-3"; empty for none."""
    words = [f"{name}-{shown(value)}" for name, value in values.items()]
    text = "_".join(re.sub(r"[^\w.+-]+", "-", word).strip("-") for word in words)
    if len(text) > 80:
        digest = hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest()
        return f"{text[:64]}-{digest[:8]}"
    return text


def write_table(
    path: Path,
    parameters: Sequence[str],
    rows: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
) -> None:
    """Write claims as CSV: a column for each parameter, then `COLUMNS`.

    Parameters
    ----------
    path
        The file.
    parameters
        Names of the columns in front.
    rows
        Pairs of parameter values and a row of `claim_rows`.
    """
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, [*parameters, *COLUMNS], lineterminator="\n")
    writer.writeheader()
    for values, row in rows:
        writer.writerow({name: values[name] for name in parameters} | dict(row))
    records.write_bytes(path, buffer.getvalue().encode())


def _about(record: Mapping[str, Any]) -> str:
    """What was run, as HTML."""
    rows = "".join(
        f"<tr><th scope='row'><code>{html.escape(name)}</code></th><td class='number"
        f"{' changed' if name in record['changed'] else ''}'>{html.escape(repr(value))}</td></tr>"
        for name, value in record["parameters"].items()
    )
    words = (
        f"with changed parameters: {', '.join(record['changed'])}. The prose below was written for "
        "the book's own values, and so were the verdicts that it expects"
        if record["changed"]
        else f"with the parameters of profile {record['profile']}"
    )
    return (
        f'<div class="about"><p>Chapter <code>{html.escape(record["chapter"])}</code>, run '
        f"{html.escape(words)}.</p><table><tbody>{rows}</tbody></table>"
        f'<p class="muted">Sources at {html.escape(record["commit"][:12])}; figures, their '
        "data and the claims lie in the folder beside this page.</p></div>\n"
    )


def _pages(chapter: Chapter) -> tuple[str, str]:
    name = chapter.name
    return f"{name}.ipynb", f"{name}.html"


def _checksums(folder: Path, record: Mapping[str, Any]) -> dict[str, str]:
    paths = [folder / name for name in (*_pages_of(record), "claims.csv")]
    for kind in ("figures", "claims"):
        paths += sorted((folder / kind).rglob("*"))
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
        if path.is_file()
    }


def _pages_of(record: Mapping[str, Any]) -> list[str]:
    name = record["chapter"].rpartition("/")[2]
    return [f"{name}.ipynb", f"{name}.html"]


def _finished(layout: Layout, chapter: Chapter, folder: Path, key: str) -> dict[str, Any] | None:
    """The record of this very run, if the folder holds all of it."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        now = cache.components(layout, chapter, record["profile"], record["loaded"])
        sound = record["key"] == key and record["components"] == now
        sound = sound and record["files"] == _checksums(folder, record)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # no run, or a damaged one: it is executed
    return record if sound else None


def _require_ours(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    ours = {RECORD, "chunks", "work", ".lock", "error.log", "logs"}
    if names and not names & ours:
        raise ArgumentError(
            "output", "a new or empty folder, or one of an earlier run", str(folder)
        )


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
