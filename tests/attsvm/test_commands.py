"""`attsvm solve` and `attsvm train`: reports, files, exit codes, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from attsvm import AttentionProblem, cli, datasets, descent, heads, metrics, selection, svm


@pytest.fixture(scope="module")
def problem() -> AttentionProblem:
    return datasets.random_problem(seed=3, n=4, T=5, d=8)


@pytest.fixture
def arrays(problem: AttentionProblem) -> dict:
    return {
        "tokens": problem.tokens,
        "queries": problem.queries,
        "labels": problem.labels,
        "v": problem.head.v,
        "selected": np.array([0, 1, 2, 3]),
    }


@pytest.fixture
def put(tmp_path: Path, monkeypatch):
    """Write a problem; the commands run in the same folder."""
    monkeypatch.chdir(tmp_path)

    def write(arrays: dict, name: str = "problem.npz") -> str:
        if name.endswith(".json"):
            listed = {k: v.tolist() if hasattr(v, "tolist") else v for k, v in arrays.items()}
            Path(name).write_text(json.dumps(listed))
        else:
            np.savez(name, **arrays)
        return name

    return write


def run(capsys, *arguments: object) -> tuple[int, str, str]:
    code = cli.main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize("norm", ["fro", "nuc"])
@pytest.mark.parametrize("name", ["problem.npz", "problem.json"])
def test_solve_reports_and_writes_the_certified_solution(put, arrays, capsys, norm, name) -> None:
    code, said, _ = run(capsys, "solve", put(arrays, name), "--norm", norm, "--json", "out.json",
                        "--npz", "out.npz")  # fmt: skip
    expected = svm.solve(arrays["tokens"], arrays["queries"], arrays["selected"], norm=norm)
    assert code == 0
    assert "status        solved" in said
    assert f"rank          {expected.rank()};" in said
    assert f"support       {expected.support().sum()} tokens" in said
    record = json.loads(Path("out.json").read_text())
    assert record["status"] == "solved" and record["norm"] == norm
    np.testing.assert_array_equal(record["W"], expected.W)
    assert record["objective"] == expected.objective and record["gap"] == expected.gap
    assert record["margins"][0][0] is None  # the selected token has no margin to itself
    with np.load("out.npz") as stored:
        np.testing.assert_array_equal(stored["support"], expected.support())
        np.testing.assert_array_equal(stored["dual"], expected.dual)
        # The file alone proves the bound: Σλ / ‖Σ λ D z'‖ in the dual norm.
        D = arrays["tokens"][np.arange(4), arrays["selected"]][:, None] - arrays["tokens"]
        M = np.einsum("nt,ntd->nd", stored["dual"], D).T @ arrays["queries"]
        bound = stored["dual"].sum() / np.linalg.norm(M, "fro" if norm == "fro" else 2)
        assert bound == pytest.approx(float(stored["objective"]), rel=1e-7)


def test_solve_names_the_tokens_that_contradict_each_other(put, capsys) -> None:
    """Two sequences that ask for opposite signs of the one number W."""
    tokens = np.array([[[1.0], [0.0], [-5.0]], [[1.0], [0.0], [5.0]]])
    put({"tokens": tokens, "queries": np.ones((2, 1)), "selected": np.array([0, 1])})
    code, said, _ = run(capsys, "solve", "problem.npz", "--npz", "o.npz", "--json", "o.json")
    assert code == 1
    assert "status        infeasible" in said
    assert "No W separates" in said and "certificate   token " in said
    record = json.loads(Path("o.json").read_text())
    weights = np.array(record["certificate"])
    D = tokens[[0, 1], [0, 1]][:, None] - tokens
    assert weights.min() >= 0 and weights.sum() > 0
    assert abs(np.einsum("nt,ntd->", weights, D)) < 1e-12
    assert record["objective"] is None and record["W"] == [[None]]
    named = [tuple(map(int, p)) for p in np.argwhere(weights > 0)]
    assert all(f"token {t} of sequence {i}" in said for i, t in named)


def test_solve_with_a_mask_and_without_constraints(put, arrays, capsys) -> None:
    mask = np.ones((4, 5), dtype=int)
    mask[:, 4] = 0
    code, said, _ = run(capsys, "solve", put(arrays | {"mask": mask}), "--npz", "o.npz")
    assert code == 0 and "constraints   12," in said
    short = svm.solve(arrays["tokens"][:, :4], arrays["queries"], arrays["selected"])
    np.testing.assert_allclose(np.load("o.npz")["W"], short.W, atol=1e-12)
    one = {"tokens": np.ones((2, 1, 3)), "queries": np.ones((2, 3)), "selected": [0, 0]}
    code, said, _ = run(capsys, "solve", put(one))
    assert code == 0 and "nothing to separate" in said


@pytest.mark.parametrize(("weights", "norm"), [("W", "fro"), ("KQ", "nuc")])
def test_train_reports_what_the_library_finds(put, arrays, problem, capsys, weights, norm) -> None:
    code, said, _ = run(capsys, "train", put(arrays), "--parameterization", weights,
                        "--iterations", 400, "--json", "o.json", "--npz", "o.npz")  # fmt: skip
    seeds = 0 if weights == "KQ" else None
    trained = descent.train(problem, weights, iterations=400, seeds=seeds)
    chosen = selection.selected_tokens(trained.attention[-1])
    solution = svm.solve(problem.tokens, problem.queries, chosen, norm=norm)
    local = selection.locally_optimal(problem, chosen, solution.support())
    correlation = metrics.correlation(trained.W[-1], solution.W)
    assert code == 0
    assert f"selected      {', '.join(map(str, chosen))}" in said
    assert f"local         {local.sum()} of 4" in said
    assert ("not locally optimal" in said) == (not local.all())
    assert f"correlation   {correlation:.10g}" in said
    record = json.loads(Path("o.json").read_text())
    assert record["correlation"] == correlation and record["locally_optimal"] == local.tolist()
    np.testing.assert_array_equal(record["svm"]["W"], solution.W)
    with np.load("o.npz") as stored:
        np.testing.assert_array_equal(stored["W"], trained.W[-1])
        np.testing.assert_array_equal(stored["selected"], chosen)
        assert ("K" in stored.files) == (weights == "KQ")


def test_train_goes_on_from_weights_in_the_file(put, arrays, problem, capsys) -> None:
    half = descent.train(problem, iterations=100)
    code, said, _ = run(capsys, "train", put(arrays | {"W": half.W[-1]}), "--iterations", 100,
                        "--npz", "o.npz")  # fmt: skip
    assert code == 0 and "from the weights in the file" in said
    whole = descent.train(problem, iterations=200)
    np.testing.assert_allclose(np.load("o.npz")["W"], whole.W[-1], rtol=1e-12)


V = np.random.default_rng(0).standard_normal((8, 3))


@pytest.mark.parametrize(
    ("changes", "head"),
    [
        ({"v": None, "V": V}, lambda v: heads.ReLUHead(V)),
        ({"ridge": 0.1}, lambda v: heads.QuadraticHead(v, 0.1)),
    ],
)
def test_train_with_other_heads(put, arrays, problem, capsys, changes, head) -> None:
    given = {name: value for name, value in (arrays | changes).items() if value is not None}
    run(capsys, "train", put(given), "--iterations", 50, "--npz", "o.npz")
    same = AttentionProblem(problem.tokens, problem.queries, problem.labels, head(arrays["v"]))
    np.testing.assert_array_equal(np.load("o.npz")["W"], descent.train(same, iterations=50).W[-1])


def test_without_a_step_there_is_no_direction(put, arrays, capsys) -> None:
    code, said, _ = run(capsys, "train", put(arrays), "--iterations", 0, "--json", "o.json")
    assert "correlation   not defined" in said
    assert json.loads(Path("o.json").read_text())["correlation"] is None
    assert code in (0, 1)


NAN = np.full((4, 8), np.nan)
# Changed arrays (None: left out), and what is said of them.
BAD = [
    ("solve", dict(queries=None), "problem: expected an array queries, got only"),
    ("solve", dict(token=np.ones(3)), "(did you mean tokens?), got one named token"),
    ("solve", dict(queries=NAN), "queries: expected"),
    ("solve", dict(queries=np.ones((3, 8))), "queries: expected shape (4, 8)"),
    ("solve", dict(tokens=np.ones((4, 5))), "tokens: expected shape (n, T, d), not empty"),
    ("solve", dict(tokens=np.ones((4, 0, 8))), "tokens: expected shape (n, T, d), not empty"),
    ("solve", dict(selected=np.array([0, 1, 2, 5])), "selected: expected entries in 0..4"),
    ("solve", dict(selected=np.array([0, 1, 2, -1])), "selected: expected entries in 0..4"),
    ("solve", dict(selected=np.array([0.5, 1, 2, 3])), "selected: expected whole numbers"),
    ("solve", dict(selected=np.array(["a"] * 4)), "selected: expected an array of numbers"),
    ("solve", dict(mask=np.zeros((4, 5), bool)), "sequence 0, where no token exists"),
    ("solve", dict(mask=np.eye(5)[:4] == 0), "sequence 0, where token 0 does not exist"),
    ("solve", dict(mask=np.full((4, 5), 2)), "mask: expected truth values"),
    ("train", dict(labels=None), "problem: expected an array labels"),
    ("train", dict(labels=np.array([1, -1, 0, 1])), "labels: expected each −1 or +1"),
    ("train", dict(v=None), "problem: expected an array v or an array V, got neither"),
    ("train", dict(V=np.ones((8, 2))), "expected an array v or an array V, got v and V"),
    ("train", dict(v=np.ones(7)), "v: expected shape (8), got shape (7,)"),
    ("train", dict(v=None, V=np.ones((7, 2))), "V: expected shape (8, m)"),
    ("train", dict(ridge=np.ones(3)), "ridge: expected a number"),
    ("train", dict(mask=np.zeros((4, 5), bool)), "mask: expected a token in every sequence"),
    ("train", dict(K=np.ones((8, 2))), "problem: expected initial W, or none, got K"),
    ("train", dict(W=np.ones((2, 2))), "expected"),
]


@pytest.mark.parametrize(("command", "changes", "reason"), BAD, ids=[b[2][:50] for b in BAD])
def test_nonsense_is_refused_with_its_reason(put, arrays, capsys, command, changes, reason) -> None:
    given = {name: value for name, value in (arrays | changes).items() if value is not None}
    code, said, complaint = run(capsys, command, put(given))
    assert code == 2 and said == ""
    assert complaint.startswith("attsvm: ") and complaint.count("\n") == 1
    assert reason in complaint


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("x.npz", b"hello", "x.npz, which is neither"),
        ("x.npz", b"", "x.npz, which is neither"),
        ("x.npz", b"PK\x03\x04 cut off", "expected an .npz or .json file of numbers"),
        ("x.json", b"{", "expected an .npz or .json file"),
        ("x.json", b"[1, 2]", "expected a JSON object of arrays"),
        (
            "x.json",
            b'{"tokens": [[1, 2], [3]], "queries": 1, "selected": 2}',
            "rows of equal length",
        ),
        ("x.json", b'{"tokens": "abc", "queries": 1, "selected": 2}', "an array of numbers"),
    ],
)
def test_unreadable_files_are_refused(put, capsys, name: str, content: bytes, reason: str) -> None:
    Path(name).write_bytes(content)
    code, _, complaint = run(capsys, "solve", name)
    assert code == 2 and reason in complaint and complaint.count("\n") == 1


def test_files_that_are_not_there_or_hold_pickles(put, arrays, capsys) -> None:
    code, _, complaint = run(capsys, "solve", "nowhere.npz")
    assert code == 2 and "nowhere.npz (No such file or directory)" in complaint
    np.savez("pickled.npz", tokens=np.array([{"run": "me"}], dtype=object))
    code, _, complaint = run(capsys, "solve", "pickled.npz")
    assert code == 2 and "expected an .npz or .json file of numbers" in complaint
    np.save("one.npy", arrays["tokens"])
    assert "one array, one.npy" in run(capsys, "solve", "one.npy")[2]


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("--step", "0", "step: expected"),
        ("--iterations", "-1", "iterations: expected"),
        ("--seed", "-1", "seeds: expected"),
        ("--width", "3", "width"),
        *(("--device", name, "device: expected one of this machine (cpu")
          for name in ("abacus", "cuda:99", "meta")),
    ],
)  # fmt: skip
def test_bad_options_of_train(put, arrays, capsys, option, value, reason: str) -> None:
    code, said, complaint = run(capsys, "train", put(arrays), option, value)
    assert code == 2 and said == "" and reason in complaint
    assert complaint.startswith("attsvm: ") and complaint.count("\n") == 1


def test_where_the_answer_cannot_be_written(put, arrays, capsys) -> None:
    code, _, complaint = run(capsys, "solve", put(arrays), "--json", "problem.npz/out.json")
    assert code == 1 and complaint.startswith("attsvm: cannot write to problem.npz")
