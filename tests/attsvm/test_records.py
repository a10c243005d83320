"""Records: what a chapter leaves behind is whole, stable, and in the right place."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from attsvm import records
from attsvm.errors import AttsvmError


def test_context_reads_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTSVM_OUTPUT", str(tmp_path))
    monkeypatch.setenv("ATTSVM_CHAPTER", "a/b")
    monkeypatch.setenv("ATTSVM_PROFILE", "quick")
    found = records.context()
    assert (found.chapter, found.profile, found.output) == ("a/b", "quick", tmp_path)
    monkeypatch.delenv("ATTSVM_OUTPUT")
    monkeypatch.delenv("ATTSVM_PROFILE")
    assert records.context().output == Path.cwd() / "attsvm-output"
    assert records.context().profile == "interactive"


def test_json_is_stable_and_strict(tmp_path):
    file = tmp_path / "deep" / "x.json"
    records.write_json(file, {"b": 1, "a": "γ"})
    assert file.read_text() == '{\n "a": "γ",\n "b": 1\n}\n'
    assert file.stat().st_mode & 0o777 == 0o644
    with pytest.raises(ValueError, match="JSON"):
        records.write_json(file, float("nan"))
    assert json.loads(file.read_text())["b"] == 1


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path, monkeypatch):
    file = tmp_path / "x"
    records.write_bytes(file, b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(AttsvmError, match="No space left"):
        records.write_bytes(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_versions_carry_no_local_label():
    found = records.versions()
    assert {"numpy", "scipy", "torch", "attsvm"} <= set(found)
    assert not any("+" in version for version in found.values())


def test_glue_takes_numbers_and_text(capsys):
    from IPython.testing.globalipapp import start_ipython

    start_ipython()
    records.glue("share", np.float64(0.5))
    records.glue("count", 3)
    records.glue("word", "yes")
    out = capsys.readouterr().out
    assert "share = 0.5" in out
    assert "count = 3" in out
    assert "word = 'yes'" in out
