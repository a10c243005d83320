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
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import attsvm

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TOOL: dict[str, Any] = tomllib.loads((ROOT / "companion" / "pyproject.toml").read_text())["project"]
WORKFLOWS = {path.stem: path for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))}
JOBS: dict[str, Any] = {name: yaml.safe_load(p.read_text()) for name, p in WORKFLOWS.items()}
PINS = [
    Requirement(line)
    for line in (ROOT / "requirements.lock").read_text().splitlines()
    if not line.startswith("#")
]
# Paths of the checkout must not leak into what runs elsewhere; nor may an outer make.
OUTER = {
    key: value
    for key, value in os.environ.items()
    if key != "PYTHONPATH" and not key.startswith("MAKE")
}


def run(
    *command: object, cwd: Path = ROOT, code: int | None = 0, **environment: str
) -> tuple[str, str]:
    """Run a command that must end with this exit code (None: any but 0); what it printed."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=OUTER | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    said = f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    assert done.returncode == code if code is not None else done.returncode, said
    return done.stdout, done.stderr


def declared(*texts: str) -> list[Requirement]:
    """Requirements of others than this project's own two distributions."""
    found = map(Requirement, texts)
    return [requirement for requirement in found if not requirement.name.startswith("attsvm")]


OF_PACKAGE = declared(*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dask"])
OF_TOOL = declared(*TOOL["dependencies"])
ALL = [*OF_PACKAGE, *OF_TOOL, *declared(*PROJECT["optional-dependencies"]["dev"])]


def locked() -> dict[str, str]:
    """Versions that the lock asks for in this environment, by normalised name."""
    here = [pin for pin in PINS if pin.marker is None or pin.marker.evaluate()]
    versions = {canonicalize_name(pin.name): str(pin.specifier)[2:] for pin in here}
    assert len(versions) == len(here), "two versions of one package"
    return versions


@pytest.mark.parametrize("requirement", ALL, ids=lambda r: r.name)
def test_pin_satisfies_the_declared_range(requirement: Requirement) -> None:
    assert requirement.specifier.contains(locked()[canonicalize_name(requirement.name)])


def test_environment_is_the_lock_and_complete() -> None:
    versions = locked()
    installed = {name: Version(importlib.metadata.version(name)).public for name in versions}
    assert installed == versions
    assert run(sys.executable, "-m", "pip", "check")[0] == "No broken requirements found.\n"


def test_lock_can_be_installed_by_strangers() -> None:
    """By plain pip, from any index, beside any build of torch."""
    for pin in PINS:
        assert re.fullmatch(r"==[0-9][0-9a-z.!]*", str(pin.specifier)), pin
        assert pin.url is None
        assert not pin.name.startswith(("cuda-", "nvidia-", "triton"))
    assert Version(locked()["jupyter-book"]) < Version("2")  # 2 reads other files


def test_conda_environment_reads_the_lock() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python, pip, from_pip = environment["dependencies"]
    assert Version(python.partition("=")[2]) in SpecifierSet(PROJECT["requires-python"])
    assert pip == "pip"
    assert from_pip["pip"] == ["-r requirements.lock", "--editable .", "--editable companion"]


def imported(folder: str) -> set[str]:
    """Distributions that the Python files below a folder import, whether at the top or inside."""
    names: set[str] = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(node.module or "")
    owners = importlib.metadata.packages_distributions()
    tops = {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names)
    return {canonicalize_name(owners[top][0]) for top in tops if top in owners}


@pytest.mark.parametrize(
    ("folder", "requirements", "rooms"),
    [
        # Only what shows results asks for IPython, and only where that is running already.
        ("attsvm", OF_PACKAGE, {"attsvm", "ipython"}),
        ("companion", OF_TOOL, {"attsvm", "attsvm-companion", "setuptools"}),
        ("tools", OF_TOOL, {"attsvm", "attsvm-companion"}),
        ("benchmarks", ALL, {"attsvm", "attsvm-companion"}),
        ("tests", ALL, {"attsvm", "attsvm-companion"}),
    ],
)
def test_whatever_is_imported_is_declared(
    folder: str, requirements: list[Requirement], rooms: set[str]
) -> None:
    found = imported(folder)
    assert found
    names = {canonicalize_name(requirement.name) for requirement in requirements}
    assert found - names - rooms == set()


def test_entry_points_are_installed_and_load() -> None:
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="attsvm")
    assert callable(script.load())
    (renderer,) = importlib.metadata.entry_points(group="myst_nb.mime_renderers", name="companion")
    assert callable(renderer.load().handle_mime)


def committed() -> list[str]:
    """Files of the repository, new ones too, without what is ignored."""
    said, _ = run("git", "ls-files", "--cached", "--others", "--exclude-standard")
    return sorted(name for name in said.splitlines() if (ROOT / name).is_file())


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel and sdist, as `make package` builds them; the wheel comes from the sdist."""
    source = tmp_path_factory.mktemp("source")
    for name in committed():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    command = ["-m", "build", "--no-isolation", "--outdir", "dist", "."]
    assert " ".join(command) in (ROOT / "Makefile").read_text()
    run(sys.executable, *command, cwd=source)
    return source / "dist"


def test_distributions_pass_the_check_of_their_index(dist: Path) -> None:
    files = sorted(dist.iterdir())
    assert [path.suffix for path in files] == [".whl", ".gz"]
    said, _ = run(sys.executable, "-m", "twine", "--no-color", "check", "--strict", *files)
    assert said.count("PASSED") == 2


def test_wheel_holds_the_package_and_its_data_only(dist: Path) -> None:
    (wheel,) = dist.glob("attsvm-*-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    packed = sorted(name for name in names if not name.partition("/")[0].endswith(".dist-info"))
    assert packed == [name for name in committed() if name.startswith("attsvm/")]
    assert {"attsvm/py.typed", "attsvm/claims.toml"} <= set(packed)


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
import attsvm, attsvm.claims
print(attsvm.__file__, attsvm.__version__, len(attsvm.claims.registry()))
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
    run(sys.executable, "-m", "venv", folder / "env")
    python = folder / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", *dist.glob("*.whl"))
    site, _ = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        # Neither the checkout nor its tool, whose metadata would add commands.
        if "attsvm" not in path.name and not (Path(site.strip()) / path.name).exists():
            (Path(site.strip()) / path.name).symlink_to(path)
    return folder


def test_installed_package_works_away_from_the_checkout(elsewhere: Path) -> None:
    programs = elsewhere / "env" / "bin"
    where, version, claims = run(programs / "python", "-c", USE, cwd=elsewhere)[0].split()
    assert Path(where).is_relative_to(elsewhere / "env")
    assert version == attsvm.__version__
    assert int(claims) > 90
    assert run(programs / "attsvm", "--version", cwd=elsewhere)[0] == f"attsvm {version}\n"
    usage = run(programs / "attsvm", "--help", cwd=elsewhere)[0]
    assert re.findall(r"^    (\w+) ", usage, re.MULTILINE) == ["solve", "train"]
    assert not list((elsewhere / "env").rglob("*companion*"))
    _, said = run(programs / "python", "-c", "import companion", cwd=elsewhere, code=1)
    assert "No module named 'companion'" in said


def test_type_checkers_see_the_hints_of_the_installed_package(elsewhere: Path) -> None:
    (elsewhere / "wrong.py").write_text(WRONG)
    python = elsewhere / "env" / "bin" / "python"
    mypy = [sys.executable, "-m", "mypy", "--python-executable", python, "wrong.py"]
    said, _ = run(*mypy, cwd=elsewhere, code=1)
    assert 'incompatible type "str"; expected "int"' in said
    assert 'Revealed type is "attsvm.problem.AttentionProblem"' in said


def test_the_tool_is_not_copied_away_from_its_checkout(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    source = shutil.copytree(ROOT / "companion", tmp_path / "companion", ignore=ignored)
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation"]
    said = run(*install, "--target", tmp_path / "away", source, code=1)
    assert "the companion tool is used from a checkout" in "".join(said)
    assert not (tmp_path / "away").exists()


@pytest.mark.parametrize("name", attsvm._MODULES)
def test_public_names_are_documented(name: str) -> None:
    module = importlib.import_module(f"attsvm.{name}")
    assert module.__doc__
    for public in module.__all__:
        value = getattr(module, public)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert len((inspect.getdoc(value) or "").split()) >= 3, f"{name}.{public}"


def test_documentation_names_extras_that_exist() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "book").rglob("*.md"))]
    named = {e for page in pages for e in re.findall(r"attsvm\[([\w,]+)\]", page.read_text())}
    assert named == set(PROJECT["optional-dependencies"]) == {"dask", "dev"}


def test_citation_names_the_version_and_the_paper() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    versions = {PROJECT["version"], TOOL["version"], attsvm.__version__, str(citation["version"])}
    assert versions == {importlib.metadata.version("attsvm")}
    (paper,) = citation["references"]
    assert paper["title"] == "Transformers as Support Vector Machines"
    authors = [author["family-names"] for author in paper["authors"]]
    assert authors == ["Ataee Tarzanagh", "Li", "Thrampoulidis", "Oymak"]
    assert {"value": "arXiv:2308.16898", "type": "other"} in paper["identifiers"]


def test_licences_are_stated() -> None:
    assert "MIT License" in (ROOT / "LICENSE").read_text()
    prose = (ROOT / "LICENSE-prose").read_text()
    assert "https://creativecommons.org/licenses/by/4.0/legalcode" in prose
    assert PROJECT["license"] == "MIT AND CC-BY-4.0"


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflow_is_modest_pinned_and_gives_way_to_its_successor(name: str) -> None:
    workflow = JOBS[name]
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["group"] == f"{workflow['name']}-${{{{ github.ref }}}}"
    assert workflow["concurrency"]["cancel-in-progress"] is not False
    allowed = {"contents": "read", "pages": "write", "id-token": "write"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 90
        assert job.get("permissions", {}).items() <= allowed.items()
    uses = [line for line in WORKFLOWS[name].read_text().splitlines() if "uses:" in line]
    pinned = r"\s+(- )?uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+"
    assert [line for line in uses if not re.fullmatch(pinned, line)] == []


def linters(*paths: Path) -> list[list[object]]:
    """The commands of `make lint` that read workflows; zizmor also for what is pasted in shells."""
    programs = Path(sys.executable).parent
    zizmor = [programs / "zizmor", "--offline", "--no-progress", "--min-severity=low"]
    return [[programs / "actionlint", "-no-color", *paths], [*zizmor, *paths]]


def test_linters_find_what_is_wrong_in_workflows_and_nothing_in_these(tmp_path: Path) -> None:
    for command in linters(*WORKFLOWS.values()):
        run(*command)
    bad = WORKFLOWS["test"].read_text().replace("matrix.os }}", "matrix.so }}")
    pasted = "run: echo ${{ github.event.pull_request.title }}\n      - run: make test"
    bad = re.sub(r"@[0-9a-f]{40} # v[\d.]+", "@main", bad).replace("run: make test", pasted)
    (tmp_path / "bad.yml").write_text(bad)
    actionlint, zizmor = (run(*command, code=None)[0] for command in linters(tmp_path / "bad.yml"))
    assert 'property "so" is not defined' in actionlint
    assert "unpinned-uses" in zizmor and "template-injection" in zizmor


def test_drift_is_measured_every_week_and_may_fail() -> None:
    workflow = JOBS["drift"]
    # YAML 1.1 reads the key `on` as true.
    assert set(workflow[True]) == {"schedule", "workflow_dispatch"}
    (schedule,) = workflow[True]["schedule"]
    assert re.fullmatch(r"\d+ \d+ \* \* \d", schedule["cron"])
    job = workflow["jobs"]["drift"]
    assert job["continue-on-error"] is True
    commands = [step.get("run", "") for step in job["steps"]]
    assert any(command.startswith("make drift") for command in commands)
    assert any("GITHUB_STEP_SUMMARY" in command for command in commands)


def test_pages_come_from_main_and_previews_from_pull_requests() -> None:
    build, deploy = (JOBS["book"]["jobs"][name] for name in ("build", "deploy"))
    steps = {step.get("name", ""): step for step in build["steps"]}
    preview = steps["Offer the site of a pull request as a preview to download"]
    assert preview["if"] == "github.event_name == 'pull_request'"
    assert preview["with"]["path"] == "_build/html"
    assert "refs/heads/main" in steps["Hand the site to Pages"]["if"]
    assert "refs/heads/main" in deploy["if"] and deploy["needs"] == "build"
    assert set(deploy["permissions"]) == {"pages", "id-token"}


def test_workflows_cover_the_supported_pythons() -> None:
    matrix = JOBS["test"]["jobs"]["test"]["strategy"]["matrix"]
    prefix = "Programming Language :: Python :: "
    declared = [c.removeprefix(prefix) for c in PROJECT["classifiers"] if c.startswith(prefix)]
    assert matrix["python"] == [version for version in declared if "." in version]
    assert [name.partition("-")[0] for name in matrix["os"]] == ["ubuntu", "macos"]


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
  "-m uv")
    cat >> "$LOG"
    echo "$@" >> "$LOG"
    printf 'numpy==2\\nnvidia-nccl==1 ; sys_platform == "linux"\\ntriton==3\\n' > _build/lock.txt ;;
  "-m pip"|"-m attsvm")
    echo "$@" >> "$LOG" ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that make needs, in a folder whose name has a space."""
    folder = tmp_path / "a clone"
    (folder / "companion").mkdir(parents=True)
    for name in ("Makefile", "requirements.lock", "pyproject.toml", "companion/pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    python = tmp_path / "python"
    python.write_text(STAND_IN)
    python.chmod(0o755)
    return folder


def make(folder: Path, *arguments: str, code: int | None = 0) -> str:
    """Run make with the stand-in, which writes into `log` beside it; everything make said."""
    log = str(folder.parent / "log")
    command = ["make", "--no-print-directory", "PYTHON=../python", *arguments]
    return "".join(run(*command, cwd=folder, code=code, LOG=log))


def test_make_creates_one_environment_and_reuses_it(checkout: Path) -> None:
    log = checkout.parent / "log"
    said = make(checkout, "book", "PROFILE=quick")
    assert "Making the environment .venv with ../python (Python 3.12.0)" in said
    assert "Installing the packages of requirements.lock" in said
    assert "Building the book, profile quick" in said
    first = log.read_text().splitlines()
    assert len([line for line in first if "-m pip" in line]) == 2
    assert first[-1] == "-m attsvm build --profile quick --jobs 2"
    assert "environment" not in make(checkout, "book")
    assert log.read_text().splitlines()[len(first) :] == ["-m attsvm build --profile full --jobs 2"]


def test_make_follows_the_lock_and_the_folder(checkout: Path) -> None:
    make(checkout, "env")
    with (checkout / "requirements.lock").open("a") as lock:
        lock.write("six==1\n")
    said = make(checkout, "env")
    assert "Installing the packages" in said and "Making" not in said
    said = make(checkout.rename(checkout.with_name("another clone")), "env")
    assert "does not work here: making it anew" in said and "Making the environment" in said


def test_make_lock_leaves_out_what_follows_from_torch(checkout: Path) -> None:
    """`make lock` asks for ranges, not for the lock, and for what is to be kept."""
    make(checkout, "env")
    log = checkout.parent / "log"
    log.unlink()
    make(checkout, "lock", "KEEP=torch<2.14")
    *asked, command = log.read_text().splitlines()
    assert asked == ["-e .[dev]", "-e companion", "torch<2.14"]
    assert command == "-m uv pip compile -q --upgrade --output-file _build/lock.txt -"
    lines = (checkout / "requirements.lock").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["numpy==2"]
    assert lines[:2] == (ROOT / "requirements.lock").read_text().splitlines()[:2]


def test_make_without_a_fitting_python_says_so(checkout: Path) -> None:
    said = make(checkout, "env", "PYTHON=/no/such/python", code=None)
    assert "Python 3.11 or newer is needed and was not found" in said
    assert not (checkout / ".venv").exists()


def test_failed_installation_is_taken_up_again(checkout: Path) -> None:
    python = checkout.parent / "python"
    python.write_text(STAND_IN.replace('echo "$@" >> "$LOG" ;;\nesac', "exit 1 ;;\nesac"))
    make(checkout, "env", code=None)
    shutil.rmtree(checkout / ".venv")
    python.write_text(STAND_IN)
    assert "Installing the packages" in make(checkout, "env")


def test_make_help_names_every_target(checkout: Path) -> None:
    (targets,) = re.findall(r"^\.PHONY: (.*)$", (checkout / "Makefile").read_text(), re.MULTILINE)
    said = make(checkout, "help")
    assert [t for t in targets.split() if f"make {t}" not in said] == ["help", "env"]
