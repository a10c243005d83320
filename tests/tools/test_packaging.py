"""Pins, metadata, licences, workflows and the Makefile agree with each other and with reality."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import attsvm
from tools import pins

ROOT = Path(__file__).parents[2]
LOCK = pins.read_lock(ROOT / "requirements.lock")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TOOL: dict[str, Any] = tomllib.loads((ROOT / "companion" / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def locked_requirements() -> list[Requirement]:
    """What pyproject asks for, but for the extras that are declared and not locked."""
    texts = PROJECT["dependencies"] + TOOL["dependencies"]
    texts += [text for name in pins.EXTRAS for text in EXTRAS[name]]
    found = [Requirement(text) for text in texts]
    return [requirement for requirement in found if requirement.name != pins.PROJECT]


@pytest.mark.parametrize("requirement", locked_requirements(), ids=lambda r: r.name)
def test_pin_satisfies_the_declared_range(requirement: Requirement) -> None:
    pinned = LOCK[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(pinned)


def test_environment_is_the_lock() -> None:
    installed = {name: Version(importlib.metadata.version(name)).public for name in LOCK}
    assert installed == LOCK


def test_lock_holds_every_transitive_requirement() -> None:
    # IPython's kernel asks for one more package on a Mac; it is resolved there.
    assert set(pins.required()) - set(LOCK) <= ({"appnope"} if sys.platform == "darwin" else set())
    if sys.version_info[:2] == tuple(map(int, pins.PYTHON.split("."))) and sys.platform == "linux":
        assert pins.required() == LOCK
        assert (ROOT / "requirements.lock").read_text() == pins.lock_text(LOCK)


def test_lock_is_the_same_whatever_build_of_torch_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = pins.required()
    requires = importlib.metadata.requires

    def with_cuda(name: str) -> list[str] | None:
        cuda = ["nvidia-cublas-cu13==13.1", "triton==3.9", "cuda-bindings==13"]
        return [*(requires(name) or ()), *(cuda if name == "torch" else ())]

    monkeypatch.setattr(importlib.metadata, "requires", with_cuda)
    assert pins.required() == before


def imported(folder: str) -> set[str]:
    """Distributions that the Python files below a folder import, whether at the top or inside."""
    names: set[str] = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module)
    owners = importlib.metadata.packages_distributions()
    tops = {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names)
    return {canonicalize_name(owners[top][0]) for top in tops if top in owners}


@pytest.mark.parametrize("folder", ["attsvm", "companion", "tools", "tests", "benchmarks"])
def test_whatever_is_imported_is_declared(folder: str) -> None:
    declared = {canonicalize_name(requirement.name) for requirement in locked_requirements()}
    found = imported(folder)
    assert found
    assert found - declared - {pins.PROJECT} == set()


def test_lock_can_be_installed_by_strangers() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert all(re.fullmatch(r"[a-z0-9.-]+==[0-9][0-9a-z.!]*", f"{n}=={v}") for n, v in LOCK.items())
    assert "://" not in text
    assert Version(LOCK["torch"]).local is None


def test_conda_environment_has_the_same_pins() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python, pip, from_pip = environment["dependencies"]
    assert Version(python.partition("=")[2]) >= Version("3.11")
    assert pip == "pip"
    pins_of_lock = [f"{name}=={version}" for name, version in LOCK.items()]
    assert from_pip["pip"] == [*pins_of_lock, "--editable .", "--editable companion"]


def test_refreshing_notices_a_changed_lock(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.pins", "--root", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    assert subprocess.run([*command, "--check"], check=False, capture_output=True).returncode == 0
    lock = tmp_path / "requirements.lock"
    lock.write_text(lock.read_text().replace("numpy==", "numpy==1"))
    done = subprocess.run([*command, "--check"], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "requirements.lock: differs from what is installed\n"


def test_line_without_an_exact_version_is_no_pin(tmp_path: Path) -> None:
    (tmp_path / "some.lock").write_text("numpy>=2\n")
    with pytest.raises(ValueError, match="expected name==version, got 'numpy>=2'"):
        pins.read_lock(tmp_path / "some.lock")


def test_jupyter_book_is_the_one_that_reads_these_files() -> None:
    assert Version(LOCK["jupyter-book"]) < Version("2")


def test_entry_points_are_installed_and_load() -> None:
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="attsvm")
    assert callable(script.load())
    (renderer,) = importlib.metadata.entry_points(group="myst_nb.mime_renderers", name="companion")
    assert callable(renderer.load().handle_mime)


def test_package_data_is_there() -> None:
    package = Path(attsvm.__file__).parent
    assert (package / "py.typed").is_file()
    assert (package / "claims.toml").is_file()


def committed() -> list[str]:
    """Files of the repository, new ones too, without what is ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return sorted(name for name in done.stdout.splitlines() if (ROOT / name).is_file())


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel and sdist, as `make package` builds them; the wheel comes from the sdist."""
    source = tmp_path_factory.mktemp("source")
    for name in committed():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", "."]
    assert " ".join(command[1:4]) in (ROOT / "Makefile").read_text()
    done = subprocess.run(command, cwd=source, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return source / "dist"


def test_distributions_pass_the_check_of_their_index(dist: Path) -> None:
    files = sorted(map(str, dist.iterdir()))
    assert [Path(name).suffix for name in files] == [".whl", ".gz"]
    command = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", *files]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2


def test_wheel_holds_the_package_and_its_data_only(dist: Path) -> None:
    (wheel,) = dist.glob("attsvm-*-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    packed = sorted(name for name in names if not name.partition("/")[0].endswith(".dist-info"))
    assert packed == [name for name in committed() if name.startswith("attsvm/")]


def test_sdist_holds_all_that_a_rebuild_needs(dist: Path) -> None:
    (path,) = dist.glob("attsvm-*.tar.gz")
    with tarfile.open(path) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    added = {name for name in names if name.startswith("attsvm.egg-info/")}
    assert sorted(names - added - {"PKG-INFO", "setup.cfg"}) == committed()


USE = """
from attsvm import datasets, svm
problems = datasets.random_problems(range(3), n=3, T=4, d=5)
tokens = problems.scores().argmax(-1)
for solution in svm.solve_many(problems.tokens, problems.queries, tokens):
    assert solution.gap < 1e-8
import attsvm
print(attsvm.__file__, attsvm.__version__)
"""
WRONG = """
from attsvm import datasets
problems = datasets.random_problems(range(3), n="three", T=4, d=5)
reveal_type(problems)
"""


@pytest.fixture(scope="module")
def elsewhere(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel; what it depends on is borrowed from this one."""
    folder = tmp_path_factory.mktemp("elsewhere")
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
    python = folder / "env" / "bin" / "python"
    (wheel,) = dist.glob("*.whl")
    command = [python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel]
    subprocess.run(command, check=True, capture_output=True)
    query = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([python, "-c", query], check=True, capture_output=True, text=True)
    # A plain path: the editable checkout, which a .pth file there adds, stays out of reach.
    borrowed = Path(site.stdout.strip()) / "borrowed.pth"
    borrowed.write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def test_installed_package_works_away_from_the_checkout(elsewhere: Path) -> None:
    python = elsewhere / "env" / "bin" / "python"
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def run(*command: object) -> str:
        done = subprocess.run(
            list(map(str, command)),
            cwd=elsewhere,
            env=clean,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    where, version = run(python, "-c", USE).split()
    assert Path(where).is_relative_to(elsewhere / "env")
    assert version == attsvm.__version__
    script = elsewhere / "env" / "bin" / "attsvm"
    assert run(script, "--version") == f"attsvm {version}\n"
    # Metadata of this environment: the entry points that matter must come from the wheel.
    registry = "import attsvm.claims; print(len(attsvm.claims.registry()))"
    assert int(run(python, "-c", registry)) > 90


def test_type_checkers_see_the_hints_of_the_installed_package(elsewhere: Path) -> None:
    (elsewhere / "wrong.py").write_text(WRONG)
    python = elsewhere / "env" / "bin" / "python"
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--python-executable", python, "wrong.py"],
        cwd=elsewhere,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert 'incompatible type "str"; expected "int"' in done.stdout
    assert 'Revealed type is "attsvm.problem.AttentionProblem"' in done.stdout


@pytest.mark.parametrize("name", attsvm._MODULES)
def test_public_names_are_documented(name: str) -> None:
    module = importlib.import_module(f"attsvm.{name}")
    assert module.__doc__
    for public in module.__all__:
        value = getattr(module, public)
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        text = inspect.getdoc(value) or ""
        assert len(text.split()) >= 3, f"{name}.{public}"


def test_extras_are_what_the_documentation_names() -> None:
    assert set(EXTRAS) == {"book", "dask", "dev", "pdf"}
    assert Version(PROJECT["version"]).release == (*map(int, PROJECT["version"].split(".")),)


def test_one_version_everywhere() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    versions = {PROJECT["version"], attsvm.__version__, str(citation["version"])}
    assert versions == {importlib.metadata.version("attsvm")}


def test_citation_names_the_paper() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    (paper,) = citation["references"]
    assert paper["title"] == "Transformers as Support Vector Machines"
    assert [author["family-names"] for author in paper["authors"]] == [
        "Ataee Tarzanagh",
        "Li",
        "Thrampoulidis",
        "Oymak",
    ]
    assert {"value": "arXiv:2308.16898", "type": "other"} in paper["identifiers"]


def test_licences_are_stated() -> None:
    assert "MIT License" in (ROOT / "LICENSE").read_text()
    prose = (ROOT / "LICENSE-prose").read_text()
    assert "https://creativecommons.org/licenses/by/4.0/legalcode" in prose
    assert PROJECT["license"] == "MIT AND CC-BY-4.0"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_is_pinned_and_modest(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    allowed = {"contents": {"read"}, "pages": {"write"}, "id-token": {"write"}}
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 90, name
        for permission, level in job.get("permissions", {}).items():
            assert level in allowed[permission], name
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", step["uses"]), step["uses"]
            # Text that strangers write (titles, branch names) must not be pasted into a shell.
            assert "${{ github.event" not in step.get("run", "")
            assert "${{ github.head_ref" not in step.get("run", "")
    # A commit alone tells nobody what it is: the version stands beside it.
    lines = [line for line in path.read_text().splitlines() if "uses:" in line]
    assert all(re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line) for line in lines)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_gives_way_to_its_successor(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    group = workflow["concurrency"]["group"]
    assert group == f"{path.stem}-${{{{ github.ref }}}}"
    assert workflow["concurrency"]["cancel-in-progress"] is not False


def test_linters_find_nothing_in_the_workflows() -> None:
    scripts = Path(sys.executable).parent
    for command in (
        ["actionlint", "-no-color"],
        ["zizmor", "--offline", "--no-progress", "--min-severity=low", ".github/workflows"],
    ):
        done = subprocess.run(
            [scripts / command[0], *command[1:]],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_linters_do_find_something(tmp_path: Path) -> None:
    bad = (ROOT / ".github/workflows/test.yml").read_text().replace("matrix.os }}", "matrix.so }}")
    loose = re.sub(r"@[0-9a-f]{40} # v[\d.]+", "@main", bad)
    (tmp_path / "bad.yml").write_text(loose)
    scripts = Path(sys.executable).parent
    for command, word in (
        (["actionlint", "-no-color", str(tmp_path / "bad.yml")], 'property "so" is not defined'),
        (["zizmor", "--offline", "--no-progress", str(tmp_path / "bad.yml")], "unpinned-uses"),
    ):
        done = subprocess.run(
            [scripts / command[0], *command[1:]],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode != 0
        assert word in done.stdout


def test_drift_is_measured_every_week_and_may_fail() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/drift.yml").read_text())
    # YAML 1.1 reads the key `on` as true.
    (schedule,) = workflow[True]["schedule"]
    minute, hour, day, month, weekday = schedule["cron"].split()
    assert (day, month) == ("*", "*")
    assert minute.isdigit() and hour.isdigit() and weekday.isdigit()
    assert "pull_request" not in workflow[True] and "push" not in workflow[True]
    job = workflow["jobs"]["drift"]
    assert job["continue-on-error"] is True
    commands = [step.get("run", "") for step in job["steps"]]
    assert any(command.startswith("make drift") for command in commands)
    assert any("GITHUB_STEP_SUMMARY" in command for command in commands)


def test_pages_come_from_main_and_previews_from_pull_requests() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/book.yml").read_text())
    build, deploy = workflow["jobs"]["build"], workflow["jobs"]["deploy"]
    steps = {step.get("name", ""): step for step in build["steps"]}
    preview = steps["Offer the site of a pull request as a preview to download"]
    assert preview["if"] == "github.event_name == 'pull_request'"
    assert preview["with"]["path"] == "_build/html"
    assert "refs/heads/main" in steps["Hand the site to Pages"]["if"]
    assert "refs/heads/main" in deploy["if"] and deploy["needs"] == "build"
    assert set(deploy["permissions"]) == {"pages", "id-token"}


def test_workflows_cover_the_supported_pythons() -> None:
    matrix = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())
    tested = matrix["jobs"]["test"]["strategy"]["matrix"]["python"]
    prefix = "Programming Language :: Python :: "
    declared = [c.removeprefix(prefix) for c in PROJECT["classifiers"] if c.startswith(prefix)]
    assert tested == [version for version in declared if "." in version]
    systems = matrix["jobs"]["test"]["strategy"]["matrix"]["os"]
    assert [name.partition("-")[0] for name in systems] == ["ubuntu", "macos"]


def test_ci_script_builds_then_tests() -> None:
    text = (ROOT / ".ci" / "run").read_text()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert text.index("make book") < text.index("make test")
    assert text.rstrip().endswith("make test")
    subprocess.run(["bash", "-n", str(ROOT / ".ci" / "run")], check=True)


# A stand-in for Python that makes an environment of one more stand-in, and notes what is asked.
STAND_IN = """#!/bin/sh
case "$1 $2" in
  "-m venv")
    mkdir -p "$3/bin"
    cp "$0" "$3/bin/python" ;;
  "--version "*)
    echo "Python 3.12.0" ;;
  "-m pip"|"-m attsvm"|"-m tools.pins")
    echo "$@" >> "$LOG" ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that make needs, in a folder whose name has a space."""
    folder = tmp_path / "a clone"
    folder.mkdir()
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    python = tmp_path / "python"
    python.write_text(STAND_IN)
    python.chmod(0o755)
    return folder


def make(folder: Path, *arguments: str, log: Path | None = None) -> tuple[int, str]:
    """Run make with the stand-in; exit code and everything it said."""
    noted = {"LOG": str(log or folder.parent / "log")}
    outer = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    done = subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=folder,
        env=outer | noted,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout


def test_make_creates_one_environment_and_reuses_it(checkout: Path) -> None:
    log = checkout.parent / "log"
    python = "PYTHON=../python"
    code, said = make(checkout, "book", "PROFILE=quick", python)
    assert code == 0, said
    assert "Making the environment .venv with ../python (Python 3.12.0)" in said
    assert "Installing the packages of requirements.lock" in said
    assert "Building the book, profile quick" in said
    first = log.read_text().splitlines()
    assert len([line for line in first if "-m pip" in line]) == 2
    assert first[-1] == "-m attsvm build --profile quick --jobs 2"
    code, said = make(checkout, "book", python)
    assert code == 0, said
    assert "environment" not in said
    assert log.read_text().splitlines()[len(first) :] == ["-m attsvm build --profile full --jobs 2"]


def test_make_follows_the_lock_and_the_folder(checkout: Path) -> None:
    python = "PYTHON=../python"
    assert make(checkout, "env", python)[0] == 0
    with (checkout / "requirements.lock").open("a") as lock:
        lock.write("six==1\n")
    said = make(checkout, "env", python)[1]
    assert "Installing the packages" in said
    assert "Making" not in said
    moved = checkout.rename(checkout.with_name("another clone"))
    said = make(moved, "env", python)[1]
    assert "does not work here: making it anew" in said
    assert "Making the environment" in said


def test_make_lock_resolves_anew_and_writes_both_files(checkout: Path) -> None:
    """`make lock` asks for ranges, not for the lock, in an environment that does not stay."""
    log = checkout.parent / "log"
    code, said = make(checkout, "lock", "PYTHON=../python", "PIP_ARGS=torch==2.13.0")
    assert code == 0, said
    install, write = log.read_text().splitlines()
    assert install.endswith("install -q torch==2.13.0 -e .[dev]")
    assert write == "-m tools.pins"
    assert not (checkout / "_build" / "lock-venv").exists()
    assert not (checkout / ".venv").exists()


def test_make_without_a_fitting_python_says_so(checkout: Path) -> None:
    code, said = make(checkout, "env", "PYTHON=/no/such/python")
    assert code != 0
    assert "Python 3.11 or newer is needed and was not found" in said
    assert not (checkout / ".venv").exists()


def test_failed_installation_is_taken_up_again(checkout: Path) -> None:
    python = checkout.parent / "python"
    python.write_text(STAND_IN.replace('echo "$@" >> "$LOG"', "exit 1"))
    code, _ = make(checkout, "env", "PYTHON=../python")
    assert code != 0
    shutil.rmtree(checkout / ".venv")
    python.write_text(STAND_IN)
    code, said = make(checkout, "env", "PYTHON=../python")
    assert code == 0
    assert "Installing the packages" in said


def test_make_help_names_every_target(checkout: Path) -> None:
    targets = re.findall(r"^\.PHONY: (.*)$", (checkout / "Makefile").read_text(), re.MULTILINE)
    said = make(checkout)[1]
    hidden = {"help", "env"}
    assert [t for t in targets[0].split() if t not in hidden and f"make {t}" not in said] == []
