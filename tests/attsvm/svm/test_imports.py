"""What `attsvm.svm` pulls in, what its modules say of themselves, and whom they cite."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pybtex.database import parse_file

from attsvm import sources, svm

ROOT = Path(__file__).parents[3]
LATER = ("_nuclear", "_interior", "_face", "_general", "_lp")


@pytest.mark.parametrize(
    ("norm", "needed"), [("fro", set()), ("nuc", {"attsvm.svm._nuclear", "attsvm.svm._interior"})]
)
def test_a_program_loads_its_own_solver_and_nothing_heavy(norm, needed):
    code = (
        "import sys, numpy as np; from attsvm import svm\n"
        f"svm.solve(np.eye(4).reshape(2, 2, 4), np.eye(4)[1:3], [0, 0], norm={norm!r})\n"
        "print(*sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"torch", "pandas", "cvxpy", "matplotlib", "joblib"}
    loaded = heavy | {f"attsvm.svm.{name}" for name in LATER}
    assert loaded & set(found.stdout.split()) == needed


def test_what_is_loaded_later_is_part_of_what_an_experiment_may_reach():
    assert {f"attsvm.svm.{name}" for name in LATER} <= set(sources.closure(["attsvm.svm"]))


@pytest.mark.parametrize("name", svm.__all__)
def test_public_names_are_documented(name):
    thing = getattr(svm, name)
    text = inspect.getdoc(thing)
    assert text
    if inspect.isfunction(thing):
        assert all(parameter in text for parameter in inspect.signature(thing).parameters)
        assert "Returns" in text
        assert "Raises" in text or not name.startswith("solve")
    for method, value in inspect.getmembers(thing, inspect.isfunction):
        if not method.startswith("_"):
            assert inspect.getdoc(value), method


def test_sources_are_in_the_bibliography():
    known = set(parse_file(ROOT / "book" / "references.bib").entries)
    text = {path.stem: path.read_text() for path in (ROOT / "attsvm").rglob("*.py")}
    cited = {name: set(re.findall(r":cite:\w:`(\w+)`", source)) for name, source in text.items()}
    assert set().union(*cited.values()) <= known
    for module, key in (
        ("_frobenius", "judice1994block"),
        ("_frobenius", "kim2011fast"),
        ("_frobenius", "lawson1974solving"),
        ("_interior", "mehrotra1992implementation"),
        ("_nuclear", "overton1995second"),
        ("_lp", "mehrotra1992implementation"),
        ("_face", "pataki1998rank"),
        ("_ball", "more1983computing"),
        ("simplex", "duchi2008efficient"),
        ("datasets", "tarzanagh2023transformers"),
    ):
        assert key in cited[module]
