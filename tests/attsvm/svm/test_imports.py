"""What `attsvm.svm` pulls in, and what its modules say of themselves."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from attsvm import svm


def test_heavy_packages_stay_out():
    code = (
        "import sys, attsvm.svm; heavy = ('torch', 'pandas', 'cvxpy', 'matplotlib', 'joblib');"
        "print([name for name in heavy if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("name", svm.__all__)
def test_public_names_are_documented(name):
    thing = getattr(svm, name)
    assert inspect.getdoc(thing)
    if inspect.isfunction(thing):
        text = inspect.getdoc(thing)
        for parameter in inspect.signature(thing).parameters:
            assert parameter in text
        assert "Raises" in text
    for method, value in inspect.getmembers(thing, inspect.isfunction):
        if not method.startswith("_"):
            assert inspect.getdoc(value), method
