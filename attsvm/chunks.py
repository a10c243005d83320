"""Finished chunks of experiments on disk: work that is done is never done twice.

An entry is named by a hash of all that determines its content: the experiment's code and the values
it uses, the seeds, the modules that it reaches, the versions of libraries and the machine.  It is
there whole or not at all, whatever happens to the process; and it carries its key and a checksum,
so that one that is cut off, changed, or not the one asked for is noticed, reported and computed
anew.  Several processes may share a folder.

An entry is text and numbers only, no pickles: a foreign file can be wrong, but it cannot run code.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import platform
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from attsvm import records, sources
from attsvm._fingerprint import fingerprint
from attsvm.errors import ArgumentError, AttsvmError

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "CacheError",
    "CacheWarning",
    "Entry",
    "Store",
    "clear",
    "entries",
    "key_of",
    "plain",
    "sweep",
]

SUFFIX = ".chunk"

# First line of every entry; then the checksum of the rest in hexadecimal, a line with what the
# entry is, and an uncompressed .npz of the columns.
_MAGIC = b"attsvm chunk 1\n"

# What a column that is no array of numbers may hold, and the kind of one that holds several.
_PLAIN = (str, bool, int, float, type(None))
_MIXED = "mixed"


class CacheWarning(UserWarning):
    """An entry of the cache cannot be used; its chunk is computed anew."""


class CacheError(AttsvmError):
    """The folder of the cache cannot be read or written.

    Parameters
    ----------
    message
        What is wrong, with the folder's name, and what helps.
    folder
        The folder.
    partial
        What was finished by then, if anything was: an `experiments.Outcome`.
    """

    def __init__(self, message: str, folder: Path, partial: object = None) -> None:
        self.message = message
        self.folder = folder
        self.partial = partial
        super().__init__(message)

    def __reduce__(self) -> tuple[type[CacheError], tuple[str, Path, object]]:
        # A worker process may have met it.
        return (type(self), (self.message, self.folder, self.partial))


class _Unusable(Exception):
    """Why an entry cannot be used, in words."""


Key: TypeAlias = tuple[str, tuple[str, ...]]
"""Hashes and versions as text, and the modules that an experiment may reach."""


def key_of(function: Callable[..., Any]) -> Key:
    """What, besides the seeds, determines the result of an experiment.

    Raises
    ------
    ArgumentError
        If the function uses a value that has no fingerprint.
    """
    own = fingerprint(function)
    reached: dict[str, Path] = {}
    for home in sorted(sources.homes(own.modules)):
        reached |= sources.closure(own.modules, home)
    libraries = sources.outside(reached) | {name.partition(".")[0] for name in own.modules}
    parts = [
        own.digest,
        repr([(name, sources.digest(path)) for name, path in reached.items()]),
        repr(sources.versions(libraries)),
        # Bytecode and rounding are those of an interpreter and a machine.
        f"{platform.python_version()} {platform.machine()}",
    ]
    return "\n".join(parts), tuple(reached)


class Store:
    """The entries of one experiment.

    Parameters
    ----------
    folder
        The cache; several experiments share one.
    function
        The experiment; see `key_of`.
    label
        Its name, for those who look into the folder.
    """

    def __init__(self, folder: Path | str, function: Callable[..., Any], label: str = "") -> None:
        self.folder = Path(folder).expanduser().absolute()
        self.label = label
        self._text, self._modules = key_of(function)
        self._used: dict[str, list[str]] = {}

    def key(self, seeds: Sequence[int]) -> str:
        """Name of the entry of a chunk."""
        return hashlib.sha256(f"{self._text}\n{list(seeds)}".encode()).hexdigest()

    def path(self, seeds: Sequence[int]) -> Path:
        """Where the entry of a chunk lies, or will."""
        key = self.key(seeds)
        return self.folder / key[:2] / f"{key}{SUFFIX}"

    def has(self, seeds: Sequence[int]) -> bool:
        """Whether there is an entry, sound or not."""
        return self.path(seeds).is_file()

    def load(self, seeds: Sequence[int]) -> pd.DataFrame | None:
        """The finished chunk; None if there is none, or none that can be used.

        Warns
        -----
        CacheWarning
            If there is an entry that is damaged or not the one its name promises.

        Raises
        ------
        CacheError
            If the folder cannot be read.
        """
        path, key = self.path(seeds), self.key(seeds)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CacheError(
                f"cannot read the cache entry {path} ({error.strerror}); name another folder "
                "(cache=… or ATTSVM_CACHE), or make this one readable",
                self.folder,
            ) from error
        try:
            header, payload = _opened(content, key)
            frame = _decoded(header, payload)
        except _Unusable as reason:
            text = f"cache entry {path} {reason}; computing it anew"
            warnings.warn(text, CacheWarning, stacklevel=3)
            return None
        self._used[key] = header["modules"]
        return frame

    def loaded(self) -> list[str]:
        """Modules that the experiment may reach and that this process has loaded."""
        return [name for name in self._modules if name in sys.modules]

    def save(
        self, seeds: Sequence[int], frame: pd.DataFrame, modules: Sequence[str] | None = None
    ) -> None:
        """Store a finished chunk: whole or not at all.

        Parameters
        ----------
        seeds
            Of the chunk.
        frame
            Its table.
        modules
            What was `loaded` where it was computed; None: whatever it may reach.

        Raises
        ------
        ArgumentError
            If a column holds something else than numbers, truth values, texts and dates.
        CacheError
            If the folder cannot be written.
        """
        header, payload = _encoded(frame)
        about = {"key": self.key(seeds), "label": self.label, "seeds": list(seeds), **header}
        about["modules"] = list(self._modules if modules is None else modules)
        body = json.dumps(about, sort_keys=True, ensure_ascii=False).encode() + b"\n" + payload
        checksum = hashlib.sha256(body).hexdigest().encode()
        self._write(self.path(seeds), _MAGIC + checksum + b"\n" + body)

    def use(self, seeds: Sequence[int], modules: Sequence[str]) -> None:
        """Note that a chunk, computed with these modules loaded, is part of a result."""
        self._used[self.key(seeds)] = list(modules)

    def report(self) -> None:
        """Tell the rebuild, if one is listening, which chunks the results come from."""
        if path := os.environ.get("ATTSVM_USED"):
            with open(path, "a", encoding="utf-8") as stream:
                for key, modules in self._used.items():
                    stream.write(json.dumps({"chunk": key, "modules": modules}) + "\n")

    def require_writable(self) -> None:
        """Try the folder before the work starts rather than after the first chunk.

        Raises
        ------
        CacheError
            If nothing can be written there.
        """
        probe = self.folder / f".probe-{os.getpid()}{SUFFIX}"
        # Permission bits do not tell the whole truth (read-only mounts, full disks).
        self._write(probe, b"attsvm\n")
        probe.unlink(missing_ok=True)

    def _write(self, path: Path, content: bytes) -> None:
        try:
            records.write_bytes(path, content, durable=True)
        except AttsvmError as error:
            raise CacheError(
                f"the cache folder {self.folder} cannot be written: {error}. Make room or make it "
                "writable, or name another folder (cache=… or ATTSVM_CACHE); chunks that are there "
                "already will be used",
                self.folder,
            ) from error


def _opened(content: bytes, key: str) -> tuple[dict[str, Any], bytes]:
    """Header and columns of the entry of this key."""
    if not content.startswith(_MAGIC):
        raise _Unusable("is no cache entry of attsvm" if content else "is empty")
    checksum, _, body = content.removeprefix(_MAGIC).partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != checksum:
        raise _Unusable("is damaged: cut off or changed")
    line, _, payload = body.partition(b"\n")
    with _understood():
        header = json.loads(line)
        header["modules"]  # an older version wrote none
        if header["key"] != key:
            raise _Unusable("holds the chunk of another experiment: copied or renamed")
        return header, payload


@contextlib.contextmanager
def _understood() -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise _Unusable("cannot be understood: written by another version") from error


def _encoded(frame: pd.DataFrame) -> tuple[dict[str, Any], bytes]:
    columns, kinds = [], []
    for name in frame:
        column, kind = frame[name].to_numpy(), str(frame[name].dtype)
        if column.dtype.kind not in "fiubcmM":
            words = column.tolist()
            for word in words:
                if not isinstance(word, _PLAIN):
                    expected = "numbers, truth values, texts or dates"
                    raise ArgumentError(f"column {name}", expected, repr(word))
            if not all(isinstance(word, str) for word in words):
                # A column of several kinds, each entry with its own.
                kind, words = _MIXED, [json.dumps(word) for word in words]
            column = np.array(words, dtype=str)
        columns.append(column)
        kinds.append((str(name), kind))
    buffer = io.BytesIO()
    # Numbered: a column may have any name, a file in an archive may not.  numpy dates files with a
    # constant, so that the same chunk gives the same bytes.
    np.savez(buffer, **{str(number): column for number, column in enumerate(columns)})
    return {"rows": len(frame), "columns": kinds}, buffer.getvalue()


def _decoded(header: dict[str, Any], payload: bytes) -> pd.DataFrame:
    import pandas as pd

    def column(stored: np.ndarray, kind: str) -> pd.Series[Any]:
        if kind == _MIXED:
            return pd.Series([json.loads(word) for word in stored.tolist()], dtype=object)
        if stored.dtype.kind == "U":
            return pd.Series(stored.tolist(), dtype=kind)
        return pd.Series(stored).astype(kind)

    with _understood(), np.load(io.BytesIO(payload), allow_pickle=False) as stored:
        named = enumerate(header["columns"])
        frame = pd.DataFrame({name: column(stored[str(k)], kind) for k, (name, kind) in named})
        if len(frame) != header["rows"]:
            raise _Unusable("lacks rows")
    return frame


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """The table as it comes out of the cache: no numpy scalars among Python's.

    A run gives the same whether its chunks were stored or not.
    """
    mixed = {
        name: [word.item() if isinstance(word, np.generic) else word for word in frame[name]]
        for name in frame
        if frame[name].dtype == object
    }
    return frame.assign(**mixed).astype({name: object for name in mixed}) if mixed else frame


@dataclass(frozen=True)
class Entry:
    """One file of a cache, of `size` bytes.

    An unusable one says in `problem` why; a sound one has its experiment's `label`, its seeds, and
    the number of rows of the table.
    """

    path: Path
    size: int
    label: str = ""
    seeds: tuple[int, ...] = ()
    rows: int = 0
    problem: str = ""


def entries(folder: Path | str) -> Iterator[Entry]:
    """All entries of a cache, and what interrupted writing has left there.

    A folder that does not exist has none.

    Raises
    ------
    CacheError
        If the folder cannot be read.
    """
    root = Path(folder).expanduser().absolute()
    if not root.exists():
        return
    if not root.is_dir():
        raise CacheError(f"{root} is a file, not the folder of a cache", root)
    try:
        for path in sorted(root.rglob(f"*{SUFFIX}*")):
            if path.is_file():
                yield _entry(path)
    except OSError as error:
        text = f"the cache folder {root} cannot be read: {error.strerror}"
        raise CacheError(text, root) from error


def _entry(path: Path) -> Entry:
    try:
        content = path.read_bytes()
    except FileNotFoundError:  # another process has just renamed or removed it
        return Entry(path, 0, problem="has gone")
    if path.suffix != SUFFIX:
        return Entry(path, len(content), problem="was never finished")
    try:
        header, _ = _opened(content, path.stem)
        seeds = tuple(header["seeds"])
        return Entry(path, len(content), header["label"], seeds, int(header["rows"]))
    except _Unusable as reason:
        return Entry(path, len(content), problem=str(reason))


def sweep(folder: Path | str) -> list[Entry]:
    """Remove the entries that cannot be used, and say which.

    Not for a folder in which another process is writing: its unfinished files would go too.
    """
    removed = [entry for entry in entries(folder) if entry.problem]
    for entry in removed:
        entry.path.unlink(missing_ok=True)
    return removed


def clear(folder: Path | str) -> tuple[int, int]:
    """Remove all entries, and the folders they leave empty; their number and bytes.

    Raises
    ------
    CacheError
        If an entry cannot be removed.
    """
    root = Path(folder).expanduser().absolute()
    count = size = 0
    try:
        for entry in list(entries(root)):
            entry.path.unlink(missing_ok=True)
            count, size = count + 1, size + entry.size
        if root.is_dir():
            for below in sorted(root.rglob("*"), reverse=True):
                if below.is_dir() and not any(below.iterdir()):
                    below.rmdir()
    except OSError as error:
        text = f"the cache folder {root} cannot be cleared: {error.strerror}"
        raise CacheError(text, root) from error
    return count, size
