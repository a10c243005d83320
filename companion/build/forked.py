"""A kernel that is forked from a warm process (see `companion.build.warm`), not started anew."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["ForkedKernel", "manager"]


class ForkedKernel:
    """A kernel's process, forked early and idle until it is told its connection file.

    To be made before the process has threads.  As much of `subprocess.Popen` as the kernel
    manager of Jupyter uses.

    Attributes
    ----------
    pid
        Its number; 0 in the kernel's process itself, which then has to call `serve`.
    """

    stdin = stdout = stderr = None

    def __init__(self, inherited: Sequence[int] = ()) -> None:
        reading, self._writing = os.pipe()
        self._reading = reading
        self._code: int | None = None
        self.pid = os.fork()
        if self.pid:
            os.close(reading)
            return
        os.close(self._writing)
        for descriptor in inherited:
            os.close(descriptor)

    def serve(self) -> None:
        """Be the kernel: wait for the command, run it to its end."""
        os.setsid()
        with os.fdopen(self._reading, encoding="utf-8") as stream:
            text = stream.read()
        if not text:
            return  # the chapter failed before it came to its kernel
        command = json.loads(text)
        os.chdir(command["cwd"])
        os.environ.update(command["environ"])
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        from ipykernel.kernelapp import IPKernelApp

        IPKernelApp.launch_instance(command["arguments"])

    def launch(self, arguments: Sequence[str], cwd: str, environ: Mapping[str, str]) -> None:
        """Tell the kernel to begin.

        Parameters
        ----------
        arguments
            Of the command line of a kernel, e.g. ``["-f", connection_file]``.
        cwd
            Its folder.
        environ
            What its environment has besides.
        """
        command = {"arguments": list(arguments), "cwd": cwd, "environ": dict(environ)}
        with os.fdopen(self._writing, "w", encoding="utf-8") as stream:
            json.dump(command, stream)

    def poll(self) -> int | None:
        """Exit code of the process, None while it runs."""
        return self._wait(os.WNOHANG)

    def wait(self) -> int | None:
        """Wait for the end of the process and return its exit code."""
        return self._wait(0)

    def send_signal(self, number: int) -> None:
        """Send a signal if the process runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask the process to end."""
        self.send_signal(signal.SIGTERM)

    def _wait(self, options: int) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code


def manager(kernel: ForkedKernel) -> type:
    """Class of kernel managers whose one kernel is there already.

    Parameters
    ----------
    kernel
        Forked, not launched.
    """
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
            kernel.launch(arguments, str(self.cwd), options["env"])
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
