"""A kernel that is forked from a warm process (see `companion.build.warm`), not started anew."""

from __future__ import annotations

import os
import signal
import sys
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from typing import Any

__all__ = ["ForkedKernel", "manager"]


class ForkedKernel(ForkProcess):
    """A kernel's process, forked early and idle until it is told its connection file.

    To be started before the process has threads.  It answers to the kernel manager of Jupyter as a
    `subprocess.Popen`.

    Parameters
    ----------
    progress
        Of the chapter's process, which closes it by ending: no other process must hold it.
    """

    stdin = stdout = stderr = None

    def __init__(self, progress: Connection) -> None:
        super().__init__()
        self._progress = progress
        self._told, self.orders = Pipe(duplex=False)

    def run(self) -> None:
        """Be the kernel: wait for the command, run it to its end."""
        os.setsid()
        self._progress.close()
        self.orders.close()
        try:
            arguments, cwd, environ = self._told.recv()
        except EOFError:
            return  # the chapter failed before it came to its kernel
        # A kernel loads what its chapter imports, and nothing of ours before: see `cache`.
        for name in [m for m in sys.modules if m.partition(".")[0] in ("attsvm", "companion")]:
            del sys.modules[name]
        os.chdir(cwd)
        os.environ.update(environ)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        from ipykernel.kernelapp import IPKernelApp

        IPKernelApp.launch_instance(arguments)

    def poll(self) -> int | None:
        """Exit code of the process, None while it runs."""
        return self.exitcode

    def wait(self) -> int | None:
        """Wait for the end of the process and return its exit code."""
        self.join()
        return self.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal if the process runs."""
        if self.pid is not None and self.poll() is None:
            os.kill(self.pid, number)


def manager(kernel: ForkedKernel) -> type:
    """Class of kernel managers whose one kernel is there already, started and not launched."""
    from jupyter_client import AsyncKernelManager
    from jupyter_client.provisioning import LocalProvisioner

    class Provisioner(LocalProvisioner):
        """Launches by telling the forked process to begin."""

        async def launch_kernel(self, cmd: list[str], **options: Any) -> Any:
            # The command is "python -m ipykernel_launcher -f FILE …": all behind the module counts.
            arguments = cmd[cmd.index("ipykernel_launcher") + 1 :]
            # ipykernel reads this from its environment on import, which is long past.
            arguments = [*arguments, f"--IPKernelApp.parent_handle={os.getpid()}"]
            # Papermill enters the chapter's folder itself instead of naming it.
            self.cwd = options.get("cwd") or os.getcwd()
            kernel.orders.send((arguments, self.cwd, options["env"]))
            self.process = kernel  # type: ignore[assignment]  # all that it is asked for, it has
            self.pid = self.pgid = kernel.pid
            return self.connection_info

    class Manager(AsyncKernelManager):
        """Jupyter's own, with that provisioner."""

        async def _async_pre_start_kernel(self, **options: Any) -> Any:
            if self.provisioner is None:
                self.kernel_id = "forked"
                self.provisioner = Provisioner(
                    kernel_id=self.kernel_id, kernel_spec=self.kernel_spec, parent=self
                )
            return await super()._async_pre_start_kernel(**options)

    return Manager
