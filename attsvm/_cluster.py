"""Where the chunks of an experiment run: here, or on the workers of a cluster.

joblib's active backend decides.  For a Dask cluster that is the reader's own

    client = distributed.Client(address)
    with joblib.parallel_config("dask"): ...

or the environment variable ``ATTSVM_DASK`` with the scheduler's address, which reaches a chapter's
kernel too.  Ray's backend (``ray.util.joblib.register_ray``) is taken in the same way.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import socket
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from attsvm import records, sources
from attsvm.errors import AttsvmError

__all__ = ["ADDRESS", "engine"]

ADDRESS = "ATTSVM_DASK"
"""The environment variable that names a Dask scheduler, e.g. ``tcp://10.0.0.1:8786``."""

Each = Callable[[Callable[..., Any], Iterable[tuple[Any, ...]]], Generator[Any, None, None]]
"""Calls a function with each of several tuples of arguments; yields results as they end."""


@contextlib.contextmanager
def engine(jobs: int | None) -> Iterator[Each]:
    """Where chunks run as long as the block lasts: a function that runs them.

    Parameters
    ----------
    jobs
        Processes on this machine; None for what the active backend says.

    Raises
    ------
    AttsvmError
        If no scheduler answers, the scheduler is lost on the way, or a chunk brings down one worker
        after the other.  Chunks that were finished by then are in the cache, if there is one.
    """
    import joblib

    backend, _ = joblib.parallel.get_active_backend()
    # By name: to ask for the class itself would import it.
    kinds = {base.__name__ for base in type(backend).__mro__}
    address = os.environ.get(ADDRESS)
    if "DaskDistributedBackend" in kinds:
        with _clear_errors(backend.client):
            yield functools.partial(_by_dask, backend.client)
    elif address and jobs is None:
        with _connected(address) as client, _clear_errors(client):
            yield functools.partial(_by_dask, client)
    elif "RayBackend" in kinds:
        yield functools.partial(_by_joblib, -1 if jobs is None else jobs, True)
    else:
        yield functools.partial(_by_joblib, jobs, False)


def _by_joblib(
    jobs: int | None,
    far: bool,
    function: Callable[..., Any],
    arguments: Iterable[tuple[Any, ...]],
) -> Generator[Any, None, None]:
    import joblib

    # In the order in which they end, one at a time: a chunk that waited for an earlier one, or for
    # its batch, would be lost with the process. Ray's backend gives results only all at once.
    backend, _ = joblib.parallel.get_active_backend()
    gradual = getattr(backend, "supports_return_generator", False)
    order = "generator_unordered" if gradual else "list"
    parallel = joblib.Parallel(n_jobs=jobs, return_as=order, batch_size=1)
    call = joblib.delayed(_far(function) if far else function)
    results = parallel(call(*each) for each in arguments)
    try:
        yield from results
    finally:
        if gradual:
            results.close()


def _by_dask(
    client: Any, function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]
) -> Generator[Any, None, None]:
    # Not through joblib's Dask backend, though it names the cluster: it waits for ever for a chunk
    # that brought its workers down, hands over no more than the workers at hand can take, so that
    # later ones find no work, and runs all itself if there is one worker with one thread.
    from distributed import as_completed

    call = _far(function)
    futures = [client.submit(call, *each, pure=False) for each in arguments]
    waiting = as_completed(futures, loop=client.loop)
    futures.clear()  # a result that has been fetched is not kept
    try:
        for future in waiting:
            yield future.result()
    finally:
        client.cancel(list(waiting.futures))


@functools.cache
def identity() -> tuple[str, ...]:
    """What must agree for two machines to compute the same: source and versions."""
    versions = (f"{name} {version}" for name, version in sorted(records.versions().items()))
    modules = sorted(sources.HOME.joinpath("attsvm").rglob("*.py"))
    source = hashlib.sha256("".join(map(sources.digest, modules)).encode()).hexdigest()
    return (f"source {source[:12]}", *versions)


def _far(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function for a machine that may have another package: it makes sure first."""
    return functools.partial(_alike, identity(), function)


def _alike(wanted: tuple[str, ...], function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a chunk, unless this machine would compute something else than the caller's."""
    if identity() != wanted:
        pairs = zip(identity(), wanted, strict=True)
        differing = ", ".join(f"{own} instead of {other}" for own, other in pairs if own != other)
        raise AttsvmError(f"the worker on {socket.gethostname()} has {differing}; install the same")
    return function(*arguments)


@contextlib.contextmanager
def _connected(address: str) -> Iterator[Any]:
    """A client of the scheduler at an address."""
    try:
        import distributed
    except ImportError as error:
        raise AttsvmError(f"{ADDRESS} is set, but Dask is missing: install attsvm[dask]") from error
    # Its reports of lost workers are for an operator; in a chapter they would be warnings.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = distributed.Client(address, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        text = f"no Dask scheduler answers at {address!r} ({ADDRESS}): {reason}"
        raise AttsvmError(text) from error
    try:
        yield client
    finally:
        client.close(timeout=1)


@contextlib.contextmanager
def _clear_errors(client: Any) -> Iterator[None]:
    """Say what a lost cluster means for the experiment, instead of where Dask noticed it."""
    import distributed
    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError

    resume = "chunks that were finished are in the cache, if one is set: run it again to go on"
    where = client.scheduler.addr if client.scheduler else "an unknown address"
    try:
        yield
    except distributed.KilledWorker as error:
        count = error.allowed_failures + 1
        raise AttsvmError(
            f"a chunk brought down {count} worker{'s' if count > 1 else ''} (out of memory?); "
            f"smaller chunks need less; {resume}"
        ) from error
    except (FutureCancelledError, CommClosedError) as error:
        raise AttsvmError(f"the Dask scheduler at {where} is gone; {resume}") from error
