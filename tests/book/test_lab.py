"""Chapters outside the rebuild: `make lab`, and any notebook program in any folder."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from booktools import REPOSITORY, free_port
from clustertools import WAIT, wait_for
from jupyter_client import BlockingKernelClient

TOKEN = "a-token-for-this-test"


class Lab:
    """A Jupyter server's REST interface."""

    def __init__(self, port: int, runtime: Path) -> None:
        self._base = f"http://127.0.0.1:{port}/api"
        self.runtime = runtime

    def ask(self, path: str, method: str = "GET", body: Any = None) -> Any:
        """The answer to a request, read as JSON."""
        request = urllib.request.Request(
            f"{self._base}/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {TOKEN}"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def answers(self) -> bool:
        """Whether the server is up."""
        try:
            self.ask("status")
        except OSError:
            return False
        return True


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """What `make lab` starts, without a browser, where a reader has a kernel of the same name."""
    home = tmp_path_factory.mktemp("home")
    foreign = home / "data" / "kernels" / "python3"
    foreign.mkdir(parents=True)
    spec = {"argv": ["/no/such/python"], "display_name": "another", "language": "python"}
    (foreign / "kernel.json").write_text(json.dumps(spec))
    port = free_port()
    options = f"--no-browser --port={port} --IdentityProvider.token={TOKEN}"
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options += " --allow-root"
    log = home / "log"
    outer = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    own = {
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "IPYTHONDIR": str(home / "ipython"),
    }
    with log.open("wb") as stream:
        process = subprocess.Popen(
            # The environment is the one that runs this test: it need not be made first.
            ["make", "-o", "env", "lab", f"PY={sys.executable}", f"LAB_ARGS={options}"],
            cwd=REPOSITORY,
            env=outer | own,
            stdout=stream,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    running = Lab(port, home / "runtime")
    try:
        wait_for(running.answers, f"no server, see {log}")
        yield running
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_lab_shows_the_chapters(lab: Lab) -> None:
    def names(folder: str) -> set[str]:
        return {entry["name"] for entry in lab.ask(f"contents/{folder}")["content"]}

    assert {"01-introduction", "05-local-convergence", "appendix-float64"} <= names("")
    assert "rank.ipynb" in names("02-attention-svm")
    assert lab.ask("contents/02-attention-svm/rank.ipynb")["type"] == "notebook"


def test_lab_runs_a_cell_with_the_package(lab: Lab) -> None:
    assert lab.ask("kernelspecs")["default"] == "python3"
    kernel = lab.ask("kernels", "POST", {"name": "python3"})
    client = BlockingKernelClient()
    client.load_connection_file(str(lab.runtime / f"kernel-{kernel['id']}.json"))
    client.start_channels()
    try:
        client.wait_for_ready(timeout=WAIT)
        said: list[str] = []
        reply = client.execute_interactive(
            "import sys, attsvm; print(sys.executable, attsvm.__version__)",
            timeout=WAIT,
            output_hook=lambda message: said.append(message["content"].get("text", "")),
        )
    finally:
        client.stop_channels()
    assert reply["content"]["status"] == "ok"
    executable, version = "".join(said).split()
    assert Path(executable).parent == Path(sys.executable).parent
    assert version


def test_chapter_runs_top_to_bottom_in_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ATTSVM_OUTPUT", "ATTSVM_CHAPTER", "ATTSVM_PROFILE", "ATTSVM_CACHE"):
        monkeypatch.delenv(name, raising=False)
    chapter = "01-introduction/token-trajectories"
    shutil.copy(REPOSITORY / "book" / f"{chapter}.ipynb", tmp_path / "my copy.ipynb")
    notebook = nbformat.read(tmp_path / "my copy.ipynb", as_version=4)
    declared = notebook["metadata"]["attsvm"]
    nbclient.NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in cells)
    assert cells[0]["outputs"] == []
    output = tmp_path / "attsvm-output"
    figures, claims = (
        {path.stem for path in (output / kind).glob("*.json")} for kind in ("figures", "claims")
    )
    assert set(declared["figures"]) <= figures and set(declared["claims"]) == claims
    assert {path.name for path in tmp_path.iterdir()} == {"my copy.ipynb", "attsvm-output"}
