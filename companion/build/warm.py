"""A process that has the heavy imports behind it, and forks the chapters.

Papermill, a kernel, PyTorch, pandas and seaborn take five seconds to import, more than many a
chapter takes to compute.  Where fork is safe (Linux; on macOS it is not, once Accelerate is loaded)
and several chapters are to run, one process imports them once.  It forks for each chapter, and the
chapter's process forks its kernel before it starts any thread.  Memory is shared, state is not.

The rebuild talks to it by a socket.  ``{"start": …}`` comes with two descriptors, for progress and
log, and is answered by the process number; ``{"wait": pid}`` is answered by the exit code.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from companion.errors import ChapterError

__all__ = ["Warm", "WarmChapter", "pays"]

# Fewer chapters than this start faster on their own.
WORTH_IT = 4
_MESSAGE = 65536
_MODULES = (
    "papermill.engines",
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "pandas",
    "seaborn",
    "torch",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg",
    "companion.build.execute",
)


def pays(chapters: int) -> bool:
    """Whether this many chapters are better forked than started one by one.

    Parameters
    ----------
    chapters
        How many are to run.
    """
    return sys.platform == "linux" and chapters >= WORTH_IT


class WarmChapter:
    """A chapter's process, forked; as much of `subprocess.Popen` as the rebuild uses.

    Parameters
    ----------
    pid
        Its number.
    warm
        The process that forked it.
    """

    def __init__(self, pid: int, warm: Warm) -> None:
        self.pid = pid
        self._warm = warm
        self._code: int | None = None

    def wait(self) -> int:
        """Wait for its end.

        Returns
        -------
        int
            The exit code; minus the signal's number if a signal ended it.
        """
        if self._code is None:
            self._code = self._warm.ask({"wait": self.pid})
        return self._code


class Warm:
    """The process that forks chapters, seen from the rebuild.

    Parameters
    ----------
    environ
        The environment of all chapters.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._socket, theirs = socket.socketpair()
        # matplotlib reads its backend on import; a kernel would set this one a little later.
        backend = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
        # -P: the folder it is started in is no place to import from.
        command = [sys.executable, "-P", "-m", "companion.build.warm", str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(
                command,
                env=dict(environ) | backend,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the rebuild, which ends its children
            )

    def start(
        self, folder: Path, environ: Mapping[str, str], progress: int, log: int
    ) -> WarmChapter:
        """Fork a chapter's process.

        Parameters
        ----------
        folder
            Where its ``request.json`` lies.
        environ
            What its environment has besides.
        progress, log
            Descriptors it writes to.
        """
        request = {"start": str(folder), "environ": dict(environ)}
        return WarmChapter(self.ask(request, [progress, log]), self)

    def ask(self, request: dict[str, Any], descriptors: Sequence[int] = ()) -> int:
        """Send a request, return the answer.

        Parameters
        ----------
        request
            See the module.
        descriptors
            What goes with it.

        Raises
        ------
        ChapterError
            If the process is gone.
        """
        try:
            socket.send_fds(self._socket, [json.dumps(request).encode()], list(descriptors))
            answer = self._socket.recv(_MESSAGE)
        except OSError:
            answer = b""
        if not answer:
            code = self._process.wait()
            raise ChapterError(f"the process that starts the chapters ended with code {code}")
        return int(answer)

    def close(self) -> None:
        """End the process; chapters that still run end with it."""
        self._socket.close()
        self._process.wait()


def main(arguments: Sequence[str]) -> int:
    """Import, then fork a chapter for each request until the rebuild closes the socket.

    Parameters
    ----------
    arguments
        The number of the socket's descriptor.

    Returns
    -------
    int
        Exit code: of this process, or of the chapter's or kernel's in a fork.
    """
    for name in _MODULES:
        importlib.import_module(name)
    # What is there now is nobody's garbage: a collector that went through it in every fork would
    # copy all of its memory, and double the time a kernel needs to end.
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(arguments[0])) as connection:
        while True:
            message, descriptors, _, _ = socket.recv_fds(connection, _MESSAGE, 2)
            if not message:
                return 0
            request = json.loads(message)
            if "wait" in request:
                _, status = os.waitpid(request["wait"], 0)
                connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
                continue
            pid = os.fork()
            if pid == 0:
                break
            for descriptor in descriptors:
                os.close(descriptor)
            connection.sendall(str(pid).encode())
    return _chapter(request, *descriptors)


def _chapter(request: dict[str, Any], progress: int, log: int) -> int:
    from companion.build import execute
    from companion.build.forked import ForkedKernel

    os.setsid()
    for standard in (1, 2):
        os.dup2(log, standard)
    os.close(log)
    os.chdir(request["start"])
    os.environ.update(request["environ"])
    kernel = ForkedKernel(inherited=[progress])
    if kernel.pid == 0:
        # A kernel loads what its chapter imports, and nothing of ours before: see `cache`.
        for name in [m for m in sys.modules if m.partition(".")[0] in ("attsvm", "companion")]:
            del sys.modules[name]
        kernel.serve()
        return 0
    return execute.main(["request.json", str(progress)], kernel=kernel)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
