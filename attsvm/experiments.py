"""The runner: a function of a chunk of seeds goes in, a tidy table and a ledger come out.

It knows no figure.  What an experiment *is* stands in its notebook, as a short function

    def local_convergence(seeds):
        problems = datasets.random_problems(seeds, n=n, T=T, d=d)
        ...
        return experiments.tabulate(seeds, over={"iteration": run.iterations}, correlation=...)

and `run` does the rest: chunks of seeds, a cache of finished chunks, progress, several processes.
"""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from attsvm import _checks, records
from attsvm._fingerprint import fingerprint
from attsvm.errors import ArgumentError, AttsvmError
from attsvm.selection import Ledger

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Outcome", "Progress", "run", "tabulate"]

Experiment = Callable[[list[int]], "pd.DataFrame"]


@dataclass(frozen=True)
class Outcome:
    """What an experiment found.

    Attributes
    ----------
    table
        Tidy: one row for each instance and coordinate, a column for each quantity, ``seed`` among
        them.
    ledger
        What became of every seed drawn.
    seeds
        The seeds, as a short text for passports.
    """

    table: pd.DataFrame
    ledger: Ledger
    seeds: str

    @property
    def kept(self) -> pd.DataFrame:
        """The rows of instances whose fate is "kept"."""
        return self.table[self.table["fate"] == "kept"].drop(columns="fate").reset_index(drop=True)


def tabulate(
    seeds: Sequence[int],
    *,
    over: Mapping[str, ArrayLike] | None = None,
    fate: Sequence[str] | str = "kept",
    label: str = "",
    **columns: Any,
) -> pd.DataFrame:
    """Arrange arrays over instances as a tidy table.

    Parameters
    ----------
    seeds
        The seeds of the chunk, (instances,).
    over
        Name and values of the one coordinate that arrays of two axes have first, e.g.
        ``{"iteration": run.iterations}``; (records,).
    fate
        What became of each instance, "kept" for all that count; (instances,) or one word for all.
    label
        Name of this run where an experiment makes several; becomes the column ``run``.
    **columns
        Quantities: a scalar, (instances,), or (records, instances).

    Raises
    ------
    ArgumentError
        If a shape fits neither.
    """
    import pandas as pd

    ids = [int(s) for s in seeds]
    fates = [fate] * len(ids) if isinstance(fate, str) else [str(f) for f in fate]
    if len(fates) != len(ids):
        raise ArgumentError("fate", f"{len(ids)} entries", str(len(fates)))
    if over is not None and len(over) != 1:
        raise ArgumentError("over", "one coordinate", str(list(over)))
    name, values = next(iter(over.items())) if over else (None, np.zeros(1))
    coordinate = np.asarray(values)
    shape = (coordinate.size, len(ids))
    data: dict[str, Any] = {"run": np.full(shape, label).ravel()} if label else {}
    data["seed"] = np.broadcast_to(np.array(ids, dtype=np.int64), shape).ravel()
    data["fate"] = np.broadcast_to(np.array(fates, dtype=object), shape).ravel()
    if name is not None:
        data[name] = np.broadcast_to(coordinate[:, None], shape).ravel()
    for column, value in columns.items():
        array = np.asarray(value)
        if array.shape not in ((), (len(ids),), shape):
            raise ArgumentError(
                column, f"a scalar, shape ({len(ids)},) or {shape}", f"shape {array.shape}"
            )
        data[column] = np.broadcast_to(array, shape).ravel()
    return pd.DataFrame(data)


def run(
    function: Experiment,
    seeds: Iterable[int],
    *,
    chunk: int = 100,
    jobs: int = 1,
    label: str | None = None,
    cache: Path | str | None = None,
    progress: bool = True,
) -> Outcome:
    """Run an experiment on all seeds, chunk by chunk.

    Parameters
    ----------
    function
        Takes a list of seeds and returns a table made by `tabulate` (or several, concatenated), in
        which every seed occurs.
    seeds
        The seeds, in order.  A longer run starts with the shorter one's: quick results are a
        prefix.
    chunk
        Seeds in one call: bounds memory, and is the unit of cache and progress.
    jobs
        Processes (joblib).  The active joblib backend decides where they run.
    label
        Name for progress and ledger; the function's name by default.
    cache
        Folder for finished chunks; by default the environment's ``ATTSVM_CACHE``, else none.  A
        chunk is found again when the function's code, the values it uses, the seeds, the package
        source and the versions are the same.
    progress
        Whether to show a bar.

    Raises
    ------
    ArgumentError
        If there is no seed, a seed occurs twice, or the function returns something else than such a
        table.
    """
    import joblib
    import pandas as pd

    all_seeds = [_checks.integer("seeds", seed, low=0) for seed in seeds]
    if not all_seeds:
        raise ArgumentError("seeds", "at least one seed", "none")
    if len(set(all_seeds)) < len(all_seeds):
        raise ArgumentError("seeds", "each seed once", "a seed twice")
    size = _checks.integer("chunk", chunk, low=1)
    title = label or function.__name__.replace("_", " ")
    chunks = [all_seeds[i : i + size] for i in range(0, len(all_seeds), size)]
    folder = cache if cache is not None else os.environ.get("ATTSVM_CACHE")
    store = _Store(Path(folder), function) if folder else None
    known = {i: store.load(part) if store else None for i, part in enumerate(chunks)}
    missing = [i for i, frame in known.items() if frame is None]
    with Progress(title, len(all_seeds), show=progress) as bar:
        bar.advance(sum(len(chunks[i]) for i in known if i not in missing))
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator")
        fresh = parallel(joblib.delayed(_call)(function, chunks[i]) for i in missing)
        for i, frame in zip(missing, fresh, strict=True):
            known[i] = frame
            if store:
                store.save(chunks[i], frame)
            bar.advance(len(chunks[i]))
    table = pd.concat([known[i] for i in range(len(chunks))], ignore_index=True)
    return Outcome(table=table, ledger=_ledger(table, title), seeds=_seeds_text(all_seeds))


def _call(function: Experiment, seeds: list[int]) -> pd.DataFrame:
    """Run one chunk and insist that no seed got lost."""
    import pandas as pd

    frame = function(seeds)
    if not isinstance(frame, pd.DataFrame) or not {"seed", "fate"} <= set(frame.columns):
        raise ArgumentError(
            "function", "a table with columns seed and fate", f"{type(frame).__name__} returned"
        )
    lost = set(seeds) ^ set(frame["seed"])
    if lost:
        raise ArgumentError("function", "a row for every seed", f"none or too many for {lost}")
    return frame


def _ledger(table: pd.DataFrame, title: str) -> Ledger:
    ledger = Ledger()
    groups = table.groupby("run", sort=False) if "run" in table else [(title, table)]
    for name, rows in groups:
        once = rows[["seed", "fate"]].drop_duplicates()
        ledger.add(str(name), once["seed"], once["fate"])
    return ledger


def _seeds_text(seeds: list[int]) -> str:
    first, last = seeds[0], seeds[-1]
    if seeds == list(range(first, last + 1)):
        return f"{first}..{last}" if last > first else f"{first}"
    return ", ".join(map(str, seeds))


class Progress:
    """A bar that knows where it is: tqdm in a terminal or a notebook."""

    def __init__(self, title: str, total: int, show: bool = True) -> None:
        from tqdm.auto import tqdm

        self._bar = tqdm(total=total, desc=title, unit="instance", disable=not show, leave=False)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def advance(self, count: int) -> None:
        """Count some instances as done."""
        self._bar.update(count)


class _Store:
    """Finished chunks on disk, each named by a hash of all that determines the result.

    An entry is the SHA-256 of an uncompressed ``.npz`` of columns, then that file.  No pickles: a
    foreign file can be wrong, but it cannot run code.
    """

    _CHECKSUM = 32

    def __init__(self, folder: Path, function: Experiment) -> None:
        self._folder = folder
        base = [
            fingerprint(function),
            records.source_hash(),
            repr(sorted(records.versions().items())),
        ]
        self._base = "\n".join(base)

    def _path(self, seeds: list[int]) -> Path:
        key = hashlib.sha256(f"{self._base}\n{seeds}".encode()).hexdigest()
        return self._folder / key[:2] / f"{key}.chunk"

    def load(self, seeds: list[int]) -> pd.DataFrame | None:
        """The stored chunk, or None; a damaged one is reported and will be computed anew."""
        import warnings

        import pandas as pd

        path = self._path(seeds)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise AttsvmError(f"cannot read the cache entry {path}: {error.strerror}") from error
        checksum, payload = content[: self._CHECKSUM], content[self._CHECKSUM :]
        if hashlib.sha256(payload).digest() != checksum:
            warnings.warn(f"cache entry {path} is damaged; computing it anew", stacklevel=3)
            return None
        with np.load(io.BytesIO(payload), allow_pickle=False) as columns:
            frame = pd.DataFrame({name: columns[name] for name in columns.files})
        return frame.astype({c: object for c in frame if frame[c].dtype.kind in "US"})

    def save(self, seeds: list[int], frame: pd.DataFrame) -> None:
        """Store a chunk: whole or not at all."""
        columns = {str(c): frame[c].to_numpy() for c in frame}
        for name, column in columns.items():
            if column.dtype.kind not in "fiub":
                columns[name] = column.astype(str)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            for name, column in columns.items():
                part = io.BytesIO()
                np.lib.format.write_array(part, column, allow_pickle=False)
                # A fixed date: the same chunk gives the same bytes.
                archive.writestr(
                    zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0)), part.getvalue()
                )
        payload = buffer.getvalue()
        records.write_bytes(self._path(seeds), hashlib.sha256(payload).digest() + payload)
