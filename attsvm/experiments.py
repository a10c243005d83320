"""The runner: a function of a chunk of seeds goes in, a tidy table and a ledger come out.

What an experiment *is* stands in its notebook, as a short function ::

    def local_convergence(seeds):
        problems = datasets.random_problems(seeds, n=n, T=T, d=d)
        ...
        return experiments.tabulate(seeds, over={"iteration": run.iterations}, correlation=...)

and `run` does the rest: chunks of seeds, a cache of finished chunks, progress, several processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from attsvm import _checks, _cluster
from attsvm._typing import ArrayLike
from attsvm.chunks import CacheError, Key, Store, key_of, plain
from attsvm.errors import ArgumentError, AttsvmError
from attsvm.selection import Ledger, fates
from attsvm.svm import evidence

if TYPE_CHECKING:
    import pandas as pd

    from attsvm.svm import GeneralSolution, Solution

__all__ = ["Interrupted", "Outcome", "join", "partial", "run", "tabulate"]

Experiment = Callable[[list[int]], "pd.DataFrame"]


@dataclass(frozen=True)
class Outcome:
    """What an experiment found.

    Attributes
    ----------
    table
        Tidy: a row for each instance and coordinate, a column for each quantity and ``seed``.
    ledger, seeds
        What became of every seed drawn, and the seeds as a short text for passports.
    complete
        Whether these are all the seeds asked for; False after an interruption.
    """

    table: pd.DataFrame
    ledger: Ledger
    seeds: str
    complete: bool = True

    @property
    def kept(self) -> pd.DataFrame:
        """The rows of instances whose fate is "kept"."""
        return self.table[self.table["fate"] == "kept"].drop(columns="fate").reset_index(drop=True)

    @classmethod
    def of(cls, table: pd.DataFrame, seeds: str) -> Outcome:
        """An outcome of a table that was cut or put together by hand, with its ledger."""
        return cls(table, _ledger(table, "instances"), seeds)

    def ledger_by(self, *columns: str) -> Ledger:
        """The ledger with one row for each value of some columns, runs together.

        Parameters
        ----------
        *columns
            Columns of the table that name a row, "n=5, T=5" for ``n`` and ``T``.
        """
        ledger = Ledger()
        once = self.table.drop_duplicates([*({"run"} & {*self.table}), "seed", *columns])
        for values, rows in once.groupby(list(columns), sort=False):
            label = ", ".join(f"{c}={v}" for c, v in zip(columns, values, strict=True))
            # A seed occurs once in each run, and may meet another fate there.
            ledger.add(label, range(len(rows)), rows["fate"])
        return ledger


def join(outcomes: Mapping[str, Outcome]) -> Outcome:
    """Several outcomes as one: tables one under the other, ledgers with their names.

    Parameters
    ----------
    outcomes
        By the name that their rows of the ledger get.
    """
    import pandas as pd

    return Outcome(
        table=pd.concat([o.table for o in outcomes.values()], ignore_index=True),
        ledger=Ledger.combined({name: o.ledger for name, o in outcomes.items()}),
        seeds="; ".join(dict.fromkeys(o.seeds for o in outcomes.values())),
        complete=all(o.complete for o in outcomes.values()),
    )


def tabulate(
    seeds: Sequence[int],
    *,
    over: Mapping[str, ArrayLike] | None = None,
    solutions: Sequence[Sequence[Solution | GeneralSolution | None]] = (),
    fate: Sequence[str] | str | None = None,
    label: str = "",
    **columns: Any,
) -> pd.DataFrame:
    """Arrange arrays over instances as a tidy table.

    Parameters
    ----------
    seeds
        The seeds of the chunk, (instances,).
    over
        Name and values (records,) of the one coordinate that arrays of two axes have first, e.g.
        ``{"iteration": run.iterations}``.
    solutions
        Lists of SVM solutions, (instances,) each, that the quantities rest on.  They decide the
        fate, and their gaps go into the table for the figure's passport (`svm.evidence`); None
        where there was nothing to solve.
    fate
        What became of each instance, "kept" for all that count; (instances,) or one word for all.
        By default what `selection.fates` says of the solutions, and "kept" without any.
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
    if fate is None:
        fate = fates(*solutions) if solutions else "kept"
    words = [fate] * len(ids) if isinstance(fate, str) else [str(f) for f in fate]
    if len(words) != len(ids):
        raise ArgumentError("fate", f"{len(ids)} entries", str(len(words)))
    if over is not None and len(over) != 1:
        raise ArgumentError("over", "one coordinate", str(list(over)))
    coordinates = {name: np.asarray(values)[:, None] for name, values in (over or {}).items()}
    shape = (len(next(iter(coordinates.values()), [0])), len(ids))
    found = {**columns, **evidence(*solutions)}
    for name, value in found.items():
        if np.shape(value) not in ((), (len(ids),), shape):
            expected = f"a scalar, shape ({len(ids)},) or {shape}"
            raise ArgumentError(name, expected, f"shape {np.shape(value)}")
    data: dict[str, Any] = {"run": label} if label else {}
    data |= {"seed": np.array(ids, dtype=np.int64), "fate": np.array(words, dtype=object)}
    data |= coordinates | found
    return pd.DataFrame({name: np.broadcast_to(v, shape).ravel() for name, v in data.items()})


def run(
    function: Experiment,
    seeds: Iterable[int],
    *,
    chunk: int = 100,
    jobs: int | None = None,
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
        The seeds, in order; quick results are a prefix of those of a longer run.
    chunk
        Seeds in one call: bounds memory, and is the unit of cache and progress.
    jobs
        Processes (joblib), −1 for all cores; None: as ``joblib.parallel_config`` says, else one.
        The active joblib backend decides where they run: ``"dask"`` and ``"ray"`` are clusters.
        Without a number, the environment's ``ATTSVM_DASK`` names the scheduler of one.
    label
        Name for progress and ledger; the function's name by default.
    cache
        Folder for finished chunks; by default the environment's ``ATTSVM_CACHE``, else none.  A
        chunk is found again when the function's code, the values it uses, the seeds, the package
        source, the versions and the machine are the same; see `attsvm.chunks`.
    progress
        Whether to show a bar.

    Raises
    ------
    ArgumentError
        If there is no seed, a seed occurs twice, or the function returns something else than such a
        table.
    CacheError
        If the cache cannot be read or written; finished chunks are in its ``partial``, and in the
        folder as far as they could be written.
    Interrupted
        On Ctrl-C, or the stop button of a notebook: see `partial`.
    """
    from tqdm.auto import tqdm

    all_seeds = [_checks.integer("seeds", seed, low=0) for seed in seeds]
    if not all_seeds:
        raise ArgumentError("seeds", "at least one seed", "none")
    if len(set(all_seeds)) < len(all_seeds):
        raise ArgumentError("seeds", "each seed once", "a seed twice")
    size = _checks.integer("chunk", chunk, low=1)
    if jobs is not None and _checks.integer("jobs", jobs, low=-1) == 0:
        raise ArgumentError("jobs", "a number of processes, or −1 for all cores", "0")
    title = label or getattr(function, "__name__", "experiment").replace("_", " ")
    chunks = [all_seeds[i : i + size] for i in range(0, len(all_seeds), size)]
    folder = cache if cache is not None else os.environ.get("ATTSVM_CACHE")
    store = Store(folder, function, title) if folder else None
    known = _known(function, chunks, store)
    missing = [i for i in range(len(chunks)) if i not in known]
    if store and missing:
        store.require_writable()
    try:
        look: dict[str, Any] = {"desc": title, "unit": "instance", "leave": False}
        with tqdm(total=len(all_seeds), disable=not progress, **look) as bar:
            bar.update(sum(len(chunks[i]) for i in known))
            for i, frame in _compute(function, chunks, missing, store, jobs):
                known[i] = frame
                bar.update(len(chunks[i]))
        if store:
            store.report()
    except CacheError as error:
        error.partial = _outcome(chunks, known, title)
        raise
    except KeyboardInterrupt:
        partial = _outcome(chunks, known, title)
        goes_on = store is not None or _remember(function, chunks, known)
        if partial is not None:
            _Memory.partial = partial
        raise Interrupted(title, len(known), len(chunks), partial, goes_on) from None
    if outcome := _outcome(chunks, known, title):
        return outcome
    raise AttsvmError(f"{title}: no chunk came back")


def partial() -> Outcome:
    """What the run that raised `Interrupted` last in this session had finished.

    Raises
    ------
    AttsvmError
        If no run was interrupted that had a finished chunk.
    """
    if _Memory.partial is None:
        raise AttsvmError("no experiment was interrupted in this session after its first chunk")
    return _Memory.partial


class Interrupted(KeyboardInterrupt):
    """A run was interrupted; what it had finished is kept.

    It is raised rather than swallowed: a cell that went on would draw a part of the instances as if
    they were all.

    Attributes
    ----------
    partial
        The outcome of the chunks that are done; None if there is none.
    done, total
        Chunks.
    """

    def __init__(
        self, title: str, done: int, total: int, partial: Outcome | None, goes_on: bool
    ) -> None:
        self.partial, self.done, self.total = partial, done, total
        text = f"{title}: {done} of {total} chunks are done"
        if partial is not None:
            text += "; experiments.partial() gives their outcome"
            text += ", and running this again goes on from there" if goes_on else ""
        super().__init__(text)


class _Memory:
    """Chunks of the run that was interrupted last, for where no folder keeps them."""

    key: Key | None = None
    frames: ClassVar[dict[tuple[int, ...], pd.DataFrame]] = {}
    partial: Outcome | None = None


def _remember(
    function: Experiment, chunks: list[list[int]], known: Mapping[int, pd.DataFrame]
) -> bool:
    """Keep finished chunks in memory; whether they will be found again."""
    _Memory.key = _key_or_none(function)
    found = _Memory.key is not None
    _Memory.frames = {tuple(chunks[i]): frame for i, frame in known.items()} if found else {}
    return found


def _known(
    function: Experiment, chunks: list[list[int]], store: Store | None
) -> dict[int, pd.DataFrame]:
    """Chunks that need not be computed: from the cache, or from an interrupted run."""
    if store is not None:
        loaded = {i: store.load(part) for i, part in enumerate(chunks)}
        return {i: frame for i, frame in loaded.items() if frame is not None}
    if not _Memory.frames or _Memory.key != _key_or_none(function):
        return {}
    frames, _Memory.frames = _Memory.frames, {}
    return {i: frames[tuple(part)] for i, part in enumerate(chunks) if tuple(part) in frames}


def _key_or_none(function: Experiment) -> Key | None:
    """None without a fingerprint: nobody can tell then whether a later run is the same."""
    try:
        return key_of(function)
    except ArgumentError:
        return None


def _compute(
    function: Experiment,
    chunks: list[list[int]],
    missing: list[int],
    store: Store | None,
    jobs: int | None,
) -> Iterator[tuple[int, pd.DataFrame]]:
    """Chunks as they are finished, each stored before the next one is waited for."""
    with _cluster.engine(jobs) as each:
        fresh = each(_task, ((function, i, chunks[i], store) for i in missing))
        try:
            for i, frame, modules, stored in fresh:
                # Given out first: what cannot be stored is at least in the error's `partial`.
                yield i, frame
                if store is not None:
                    store.use(chunks[i], modules)
                    if not (stored and store.has(chunks[i])):
                        store.save(chunks[i], frame, modules)
        finally:
            fresh.close()


def _task(
    function: Experiment, index: int, seeds: list[int], store: Store | None
) -> tuple[int, pd.DataFrame, list[str], bool]:
    """One chunk, where it runs: computed, and stored at once if the folder is within reach."""
    frame = function(seeds)
    if not {"seed", "fate"} <= set(getattr(frame, "columns", ())):
        came = f"{type(frame).__name__} returned"
        raise ArgumentError("function", "a table with columns seed and fate", came)
    if lost := set(seeds) ^ set(frame["seed"]):
        raise ArgumentError("function", "a row for every seed", f"none or too many for {lost}")
    frame = plain(frame)
    if store is None:
        return index, frame, [], False
    modules, stored = store.loaded(), store.folder.is_dir()
    if stored:
        try:
            store.save(seeds, frame, modules)
        except CacheError:
            stored = False  # the process that waits for this chunk tries itself, and tells
    return index, frame, modules, stored


def _outcome(
    chunks: list[list[int]], known: Mapping[int, pd.DataFrame], title: str
) -> Outcome | None:
    """The outcome of the chunks that are known; None if there is none."""
    import pandas as pd

    if not known:
        return None
    done = sorted(known)
    table = pd.concat([known[i] for i in done], ignore_index=True)
    seeds = [seed for i in done for seed in chunks[i]]
    first, last = seeds[0], seeds[-1]
    whole = len(seeds) > 1 and seeds == list(range(first, last + 1))
    text = f"{first}..{last}" if whole else ", ".join(map(str, seeds))
    return Outcome(table, _ledger(table, title), text, complete=len(done) == len(chunks))


def _ledger(table: pd.DataFrame, title: str) -> Ledger:
    ledger = Ledger()
    groups = table.groupby("run", sort=False) if "run" in table else [(title, table)]
    for name, rows in groups:
        once = rows[["seed", "fate"]].drop_duplicates()
        ledger.add(str(name), once["seed"], once["fate"])
    return ledger
