"""One chapter with values of the reader's choice, into a folder of the reader's choice.

The folder then holds the page, the executed notebook, figures with their data, claims, a table of
the claims, and ``run.json``, which says what was run and is written last: a folder without it is
one of an unfinished run, which goes on where it was cut off.
"""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attsvm import records
from attsvm.errors import ArgumentError
from companion.build import cache, schedule
from companion.build.chapters import Chapter
from companion.build.guard import exclusive
from companion.build.layout import Layout, commit, files_in, remove
from companion.build.progress import Progress
from companion.build.warm import starter
from companion.errors import BuildError, ChapterError
from companion.run import page
from companion.run.parameters import Parameter
from companion.run.tables import claim_rows, write_claims

__all__ = ["RECORD", "Run", "run"]

RECORD = "run.json"


@dataclass(frozen=True)
class Run:
    """One executed chapter."""

    folder: Path  # where its results lie
    record: dict[str, Any]  # content of `run.json`
    fresh: bool  # whether it was executed now, or found finished

    @property
    def main(self) -> Path:
        """The page, or the notebook."""
        return self.folder / self.record["main"]


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
) -> Run:
    """Execute a chapter and leave its results in a folder.

    Parameters
    ----------
    layout, chapter
        The book and the chapter.
    parameters, values
        Its parameters, and a value for each, already checked.
    folder
        Where to put the results: new, empty, or of an earlier run.
    profile
        What values are compared with to say which were changed.
    to
        ``"html"`` or ``"ipynb"``; the notebook is always there.
    force
        Execute even if the folder holds this very run.

    Raises
    ------
    ArgumentError
        If the folder cannot be written or holds other things.
    ChapterError
        If a cell fails, naming the cell and what it said.
    """
    progress = Progress()
    own = Layout.of(layout.root, folder, writes=True)
    _require_ours(folder)
    key = repr([profile, dict(values), to])
    with exclusive(own, progress.say):
        record = None if force else _finished(layout, folder, chapter, key)
        fresh = record is None
        if record is None:
            # By name: whatever else lies in the folder is somebody's.
            for name in (*_files(chapter), "error.log", RECORD, *(["chunks"] if force else [])):
                remove(folder / name)
            set_here = {p.name: values[p.name] for p in parameters if values[p.name] != p.default}
            try:
                left = _execute(layout, own, chapter.with_values(set_here), profile, progress)
            finally:
                remove(own.settings)
            record = {
                "chapter": chapter.id,
                "profile": profile,
                "parameters": dict(values),
                "changed": {
                    parameter.name: values[parameter.name]
                    for parameter in parameters
                    if values[parameter.name] != parameter.standard(profile)
                },
                "claims": _claims(chapter, left.folder / "results"),
                "notes": json.loads((left.folder.parent / "notes.json").read_text("utf-8")),
                "commit": commit(layout.root),
                "versions": records.versions(),
                "key": key,
                "loaded": left.modules,
                "components": cache.components(layout, chapter, profile, left.modules),
                "main": f"{chapter.name}.{to}",
            }
            _fill(folder, chapter, record, left.folder)
            for scratch in (own.work, own.logs, own.chunks):
                remove(scratch)
        own.guard.unlink(missing_ok=True)
    return Run(folder, record, fresh)


def _fill(folder: Path, chapter: Chapter, record: dict[str, Any], prepared: Path) -> None:
    """Put what a chapter left into the folder of the run, the record last."""
    for kind in ("figures", "claims"):
        os.rename(prepared / "results" / kind, folder / kind)
    os.rename(prepared / "notebook.ipynb", folder / f"{chapter.name}.ipynb")
    write_claims(folder / "claims.csv", claim_rows(record))
    if record["main"].endswith(".html"):
        notebook = folder / f"{chapter.name}.ipynb"
        text = page.render(notebook, folder, _about(record), record["notes"])
        records.write_bytes(folder / record["main"], text.encode())
    record["files"] = _checksums(folder, chapter)
    records.write_json(folder / RECORD, record)


def _execute(
    layout: Layout, own: Layout, chapter: Chapter, profile: str, progress: Progress
) -> schedule.Left:
    """Run the cells of a chapter as it stands."""
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
    found: list[schedule.Left] = []
    try:
        schedule.execute(
            [chapter.id],
            lambda _: schedule.launch(own, chapter, profile, base, starter(1, {}), strict=False),
            lambda job: found.append(schedule.settle(layout, job)),
            jobs=1,
            progress=progress,
        )
    except ChapterError as error:
        # Cell and message are for the reader; the whole traceback goes to a file.
        log = own.output / "error.log"
        lines = [line for line in error.details if not line.startswith("log: ")]
        log.write_text("\n".join([error.message, *lines]) + "\n", encoding="utf-8")
        said = next((line.strip() for line in reversed(lines) if line.strip()), "")
        whole = f"the whole traceback is in {log}"
        raise ChapterError(f"{error.message}: {said}", [whole]) from error
    return found[0]


def _claims(chapter: Chapter, results: Path) -> list[dict[str, Any]]:
    """Records of the claims, in the order of the chapter."""
    paths = {name: results / "claims" / f"{name}.json" for name in chapter.claims}
    missing = [name for name, path in paths.items() if not path.is_file()]
    if missing:
        raise BuildError(f"chapter {chapter.id} did not report {', '.join(missing)}")
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths.values()]


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


def _files(chapter: Chapter) -> list[str]:
    """What a run makes beside its record."""
    return [f"{chapter.name}.ipynb", f"{chapter.name}.html", "claims.csv", "figures", "claims"]


def _checksums(folder: Path, chapter: Chapter) -> dict[str, str]:
    made = _files(chapter)
    found = files_in(folder).items()
    return cache.checksums({name: path for name, path in found if name.split("/")[0] in made})


def _finished(layout: Layout, folder: Path, chapter: Chapter, key: str) -> dict[str, Any] | None:
    """The record of this very run, if the folder holds all of it."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        now = cache.components(layout, chapter, record["profile"], record["loaded"])
        sound = record["key"] == key and record["components"] == now
        sound = sound and record["files"] == _checksums(folder, chapter)
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
