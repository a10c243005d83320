"""Wrong input is refused by an error that names the argument, says what was expected and what came.

One row for each: the argument and a call.  What the SVM refuses is in `svm/test_input.py`.
"""

from __future__ import annotations

from types import SimpleNamespace

import descenttools
import numpy as np
import pandas as pd
import pytest

from attsvm import (
    claims,
    datasets,
    descent,
    experiments,
    figures,
    landscape,
    metrics,
    published,
    records,
    selection,
    simplex,
    svm,
)
from attsvm.errors import ArgumentError
from attsvm.heads import LinearHead, QuadraticHead, ReLUHead, stack_heads
from attsvm.problem import AttentionProblem, stack

I2 = np.eye(2)
SIZES = {"n": 2, "T": 3, "d": 4}
ONE = datasets.random_problem(0, **SIZES)
MANY = datasets.random_problems([0, 1], **SIZES)
RELU = datasets.relu_problem(0, **SIZES)
SMOOTH = datasets.orthonormal_problem(0, **SIZES, ridge=0.3)
W0, W4 = np.zeros((6, 6)), np.zeros((4, 4))
K0 = np.zeros((6, 2))
SOLUTIONS = svm.solve_many(MANY.tokens, MANY.queries, selection.optimal_tokens(MANY))


def changed(problem=ONE, **parts):
    """A problem from the parts of another, some of them replaced."""
    names = ("tokens", "queries", "labels", "head", "mask")
    return AttentionProblem(**{name: getattr(problem, name) for name in names} | parts)


def train(**options):
    return descent.train(**{"problem": descenttools.problem(19), "iterations": 2} | options)


def train_pair(**options):
    return train(parameterization="KQ", **options)


def path(**options):
    return descent.regularization_path(**{"problem": ONE, "radii": [1.0]} | options)


def accept(attention, problem=MANY, **options):
    return selection.acceptance(problem, attention, **options)


def add(seeds, fates):
    ledger = selection.Ledger()
    ledger.add("run", [0, 1], ["kept", "infeasible"])
    ledger.add("run", seeds, fates)


def run(function, seeds=range(4)):
    return experiments.run(function, seeds, progress=False)


def table(**options):
    return experiments.tabulate([0, 1], **options)


def judged(**changes):
    return claims.judge(SimpleNamespace(id="a", **changes), metrics.mean_estimate([1.0]))


def drawn(y=(1.0, 2.0)):
    return pd.DataFrame({"x": [1, 2], "y": y, "hit": [True, False]})


def curves(lines, x="x", by="hit"):
    summary = figures.summarise(drawn(), ["hit", "x"], "y")
    figures.curves(figures.grid()[1], summary, x, by, lines)


def instances(places=(1,), rows=None, **options):
    found = table(over={"k": places}, y=1.0)[:rows]
    figures.instances(found, "k", {"y": "Y"}, **{"by": "fate"} | options)


CASES = [
    # problems and heads
    ("tokens", lambda: changed(tokens=np.zeros((3, 4)))),
    ("tokens", lambda: changed(tokens=np.zeros((0, 3, 4)))),
    ("tokens", lambda: changed(tokens=np.full((2, 3, 4), np.nan))),
    ("tokens", lambda: changed(tokens=np.zeros((2, 3, 4), dtype=complex))),
    ("tokens", lambda: changed(tokens=[["a"]])),
    ("queries", lambda: changed(queries=np.zeros((2, 3)))),
    ("queries", lambda: changed(queries=np.full((2, 4), np.inf))),
    ("labels", lambda: changed(labels=np.array([1.0, 0.0]))),
    ("labels", lambda: changed(labels=np.ones(3))),
    ("head", lambda: changed(head="linear")),
    ("head", lambda: changed(head=LinearHead(np.ones(3)))),
    ("head", lambda: changed(head=LinearHead(np.ones((2, 4))))),
    ("mask", lambda: changed(mask=np.ones((2, 3)))),
    ("mask", lambda: changed(mask=np.zeros((2, 3), dtype=bool))),
    ("problems", lambda: stack([])),
    ("problems", lambda: stack([ONE, datasets.random_problem(0, n=2, T=5, d=4)])),
    ("heads", lambda: stack(changed(head=QuadraticHead(np.ones(4), r)) for r in (0.1, 0.2))),
    ("heads", lambda: stack_heads([LinearHead(np.ones(3)), ReLUHead(np.ones((3, 3)))])),
    ("heads", lambda: stack_heads([LinearHead(np.ones(3)), LinearHead(np.ones(4))])),
    ("heads", lambda: stack_heads([])),
    ("index", lambda: ONE.instance(0)),
    ("index", lambda: MANY.instance(2)),
    ("v", lambda: LinearHead(np.array(1.0))),
    ("v", lambda: LinearHead(np.array([np.nan, 1.0]))),
    ("V", lambda: ReLUHead(np.ones(3))),
    ("ridge", lambda: QuadraticHead(np.ones(3), ridge=-1.0)),
    # data
    ("seed", lambda: datasets.random_problem(-1, **SIZES)),
    ("seed", lambda: datasets.random_problem(0.5, **SIZES)),
    ("n", lambda: datasets.random_problem(0, n=0, T=2, d=2)),
    ("attention", lambda: datasets.random_problem(0, **SIZES, attention="none")),
    ("seeds", lambda: datasets.random_problems([], **SIZES)),
    ("T", lambda: datasets.planar_problem(4)),
    ("T", lambda: datasets.orthonormal_problem(0, n=2, T=4, d=2, ridge=0.1)),
    ("labels", lambda: datasets.sequence_problem(0, **SIZES, labels="token")),
    ("T", lambda: datasets.sequence_problem(0, n=2, T=0, d=2)),
    ("spread", lambda: datasets.equal_score_problem(0, **SIZES, spread=-0.1)),
    ("spread", lambda: datasets.equal_score_problem(0, **SIZES, spread=1.5)),
    ("spread", lambda: datasets.equal_score_problem(0, **SIZES, spread=np.nan)),
    ("problem", lambda: datasets.compressed(SMOOTH)),
    ("name", lambda: published.table("nothing")),
    # descent
    ("parameterization", lambda: train(parameterization="V")),
    ("gradient", lambda: train(gradient="approximate")),
    ("rule", lambda: train(rule="adam")),
    ("step", lambda: train(step=-0.1)),
    ("step", lambda: train(step=0.0)),
    ("step", lambda: train(step=np.nan)),
    ("step(0)", lambda: train(step=lambda k: -1.0)),
    ("iterations", lambda: train(iterations=-1)),
    ("iterations", lambda: train(iterations=1.5)),
    ("ridge", lambda: train(ridge=-1.0)),
    ("ridge", lambda: train(rule="polyak", ridge=0.1)),
    ("log_ridge", lambda: train(ridge=1.0, log_ridge=0.0)),
    ("width", lambda: train(width=3)),
    ("width", lambda: train_pair(width=0)),
    ("initial", lambda: train(initial=W0[:5, :5])),
    ("initial", lambda: train(initial=np.zeros((2, 6, 6)))),
    ("initial", lambda: train(initial=np.full((6, 6), np.nan))),
    ("initial", lambda: train_pair(initial=W0)),
    ("initial Q", lambda: train_pair(initial=(K0, K0[:, :1]))),
    ("initial", lambda: train_pair(initial=descent.State(0, W=W0))),
    ("initial", lambda: train_pair()),
    ("seeds", lambda: train(initial=W0, seeds=[0, 1, 2])),
    ("seeds", lambda: train(seeds=[0, 1])),
    ("seeds", lambda: train(seeds=[0, 1, -2])),
    ("record", lambda: train(record=[100])),
    ("record", lambda: train(record=[0.5])),
    ("keep", lambda: train(keep=("W", "V"))),
    ("keep", lambda: train(keep=("K",))),
    ("measure", lambda: train(measure={"one": lambda snapshot: 1.0})),
    ("chunk", lambda: train(chunk=0)),
    ("device", lambda: train(device="abacus")),
    ("target", lambda: train(target=0.1)),
    ("target", lambda: train(rule="polyak", target=0.1)),
    ("target", lambda: train(rule="polyak", problem=descenttools.problem(20, head="quadratic"))),
    ("problem", lambda: train(problem=np.zeros((2, 3, 4)))),
    ("step", lambda: descent.every(0)),
    ("step", lambda: descent.every(-1)),
    ("step", lambda: descent.every(1.5)),
    ("iterations", lambda: descent.at([-1])),
    ("radii", lambda: path(radii=[])),
    ("radii", lambda: path(radii=[0.0, 1.0])),
    ("radii", lambda: path(radii=[2.0, 1.0])),
    ("radii", lambda: path(radii=[np.nan])),
    ("norm", lambda: path(norm="op")),
    ("starts", lambda: path(starts=[I2])),
    ("tolerance", lambda: path(tolerance=0.0)),
    ("problem", lambda: path(problem=MANY)),
    ("problem", lambda: path(problem=RELU)),
    ("problem", lambda: path(problem=None)),
    # the loss surface and the simplex
    ("W", lambda: landscape.logits(ONE, np.zeros((3, 3)))),
    ("along", lambda: landscape.descent_rate(ONE, W4, np.zeros((2, 4)))),
    ("problem", lambda: landscape.gradient(SMOOTH, W4)),
    ("problem", lambda: landscape.stationary_points(MANY, W4[None])),
    ("solutions", lambda: landscape.solution_logits([])),
    ("problem", lambda: simplex.optimal_attention(ONE)),
    ("problem", lambda: simplex.optimal_attention(changed(SMOOTH, tokens=2 * SMOOTH.tokens))),
    ("problem", lambda: simplex.optimal_attention(changed(SMOOTH, labels=-SMOOTH.labels))),
    ("problem", lambda: simplex.optimal_attention(changed(SMOOTH, mask=np.eye(2, 3) > 0))),
    ("points", lambda: simplex.project(np.zeros((2, 0)))),
    ("points", lambda: simplex.project([np.nan])),
    # what is measured
    ("A", lambda: metrics.correlation(np.ones(3), I2)),
    ("A", lambda: metrics.correlation(np.full((2, 2), np.nan), I2)),
    ("A", lambda: metrics.correlation("text", I2)),
    ("B", lambda: metrics.correlation(I2, np.eye(3))),
    ("B", lambda: metrics.correlation(np.ones((2, 2, 2)), np.ones((3, 2, 2)))),
    ("W", lambda: metrics.stable_rank(np.ones(3))),
    ("tolerance", lambda: metrics.numerical_rank(I2, -1.0)),
    ("values", lambda: metrics.mean_estimate([])),
    ("values", lambda: metrics.mean_estimate([np.nan])),
    ("hits", lambda: metrics.share_estimate(np.array([], dtype=bool))),
    ("hits", lambda: metrics.share_estimate(np.array([0.0, 1.0]))),
    ("share", lambda: metrics.wilson_interval(1.5, 10)),
    ("n", lambda: metrics.wilson_interval(0.5, 0)),
    ("W", lambda: metrics.log_gap(ONE, np.zeros((3, 3)))),
    ("W", lambda: metrics.log_gap(MANY, np.zeros((3, 4, 4)))),
    ("problem", lambda: metrics.log_gap(RELU, W4)),
    # selection and the ledger
    ("attention", lambda: selection.selected_tokens(np.array(1.0))),
    ("attention", lambda: selection.selected_tokens(np.zeros((2, 0)))),
    ("attention", lambda: selection.selected_tokens(np.full((1, 2), np.nan))),
    ("threshold", lambda: selection.selected_sets(I2, 1.5)),
    ("dropped", lambda: accept(np.ones((2, 2, 3)), selected=1e-6, dropped=1e-3)),
    ("rules", lambda: accept(np.ones((2, 2, 3)), rules=("too ugly",))),
    ("attention", lambda: accept(np.ones((1, 2, 3)))),
    ("problem", lambda: accept(np.ones((2, 3)), ONE)),
    ("columns", lambda: selection.first_fate(["kept"], ["kept", "kept"])),
    ("columns", lambda: selection.first_fate()),
    ("solutions", lambda: selection.fates(SOLUTIONS, SOLUTIONS[:-1])),
    ("solutions", lambda: selection.convergence_types(MANY, [[0, 0]] * 2, SOLUTIONS[:-1])),
    ("problem", lambda: selection.convergence_types(ONE, [0, 0], SOLUTIONS)),
    ("fates", lambda: add([1], ["kept"])),
    ("fates", lambda: add([7, 8], ["kept"])),
    ("fates", lambda: add([9], [""])),
    # experiments, claims and records
    ("seeds", lambda: run(table, [])),
    ("seeds", lambda: run(table, [1, 1])),
    ("seeds", lambda: run(table, [-1])),
    ("seeds", lambda: run(table, [0.5])),
    ("function", lambda: run(lambda seeds: experiments.tabulate(seeds[1:], x=0))),
    ("function", lambda: run(lambda seeds: 3)),
    ("x", lambda: table(x=np.zeros(3))),
    ("fate", lambda: table(fate=["kept"])),
    ("over", lambda: table(over={"a": [1], "b": [2]}, x=1)),
    ("id", lambda: claims.find("nothing.of-the-kind")),
    ("claim", lambda: judged(criterion=None, reason="a limit")),
    ("value", lambda: records.glue("bad", np.nan)),
    # figures
    ("table", lambda: figures.summarise(drawn(), ["nothing"], "y")),
    ("table", lambda: figures.summarise(drawn((1.0, np.nan)), ["x"], "y")),
    ("table", lambda: figures.summarise(drawn((0.0, 1.0)), ["x"], "y", geometric=True)),
    ("value", lambda: figures.shares(drawn(), ["x"], "y")),
    ("lines", lambda: curves({"V": ("V", "blue")})),
    ("summary", lambda: curves({1: ("both", "blue")}, "instances", "instances")),
    ("table", lambda: instances(by="run")),
    ("table", lambda: instances(rows=0)),
    ("table", lambda: instances(places=[1, 1])),
    ("log", lambda: instances(log=["width"])),
]  # fmt: skip


@pytest.mark.parametrize(
    ("argument", "call"), CASES, ids=[f"{number}-{name}" for number, (name, _) in enumerate(CASES)]
)
def test_wrong_input_is_named(argument, call):
    with pytest.raises(ArgumentError) as error:
        call()
    assert error.value.argument == argument
    assert error.value.expected and error.value.got
    assert str(error.value).startswith(argument)
