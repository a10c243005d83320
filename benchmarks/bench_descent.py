"""How fast is `attsvm.descent`, beside automatic differentiation, on one thread in one run?

    python benchmarks/bench_descent.py [--quick] [--json descent.json]

Opponents: *authors' way*, one instance at a time, a module, autograd, an update in a Python loop,
written from the paper's protocol; and *vmap(grad)*, all instances at once by
``torch.func.vmap(torch.func.grad(…))`` with the same normalised update.  Both saturate like the
authors' code; `attsvm` is timed in exact arithmetic unless said otherwise.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from typing import Any

import _measure
from _measure import Row, growth, timed

import numpy as np  # isort: skip
import torch

from attsvm import datasets, descent, metrics, svm
from attsvm.heads import LinearHead
from attsvm.problem import AttentionProblem

SIZE = {"n": 6, "T": 8, "d": 10}
EPSILON = 2.22e-16


class Attention(torch.nn.Module):
    """f(X, z) = v'X'S(X W z), or with W = K Q', as a module with torch's default start."""

    def __init__(self, d: int, factored: bool) -> None:
        super().__init__()
        self.factored = factored
        self.first = torch.nn.Linear(d, d, bias=False, dtype=torch.float64)
        if factored:
            self.second = torch.nn.Linear(d, d, bias=False, dtype=torch.float64)

    def forward(self, X: torch.Tensor, Z: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        W = self.first.weight
        if self.factored:
            W = W @ self.second.weight.T
        attention = torch.softmax(torch.einsum("itd,de,ie->it", X, W, Z), -1)
        return torch.einsum("it,itd->id", attention, X) @ v


def _tensors(problem: AttentionProblem) -> list[Any]:
    return list(
        map(torch.tensor, (problem.tokens, problem.queries, problem.labels, problem.head.v))
    )


def authors_loop(
    problem: AttentionProblem, iterations: int, factored: bool, start: list[Any] | None = None
) -> list[Any]:
    """One instance, autograd, normalised steps; answers the final arrays."""
    X, Z, Y, v = _tensors(problem)
    model = Attention(X.shape[-1], factored)
    parameters = list(model.parameters())
    if start is not None:
        with torch.no_grad():
            for parameter, value in zip(parameters, start, strict=True):
                parameter.copy_(torch.tensor(value))
    for _ in range(iterations):
        loss = torch.nn.functional.softplus(-Y * model(X, Z, v)).mean()
        if factored:
            loss = loss + EPSILON * sum(p.square().sum() for p in parameters)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in parameters:
                gradient = parameter.grad
                parameter -= 0.1 * gradient / (gradient.norm() + EPSILON)
    return [parameter.detach().numpy() for parameter in parameters]


def vmap_loop(problems: AttentionProblem, iterations: int, factored: bool) -> None:
    """All instances at once by vmap(grad)."""
    data, d = _tensors(problems), problems.d
    shapes = [(d, d)] * (2 if factored else 1)
    arrays = [torch.tensor(a) for a in descent.random_weights(range(len(problems)), shapes)]

    def loss(parameters: list[Any], X: Any, Z: Any, Y: Any, v: Any) -> Any:
        W = parameters[0] @ parameters[1].T if factored else parameters[0]
        attention = torch.softmax(((X @ W) * Z[:, None]).sum(-1), -1)
        output = ((attention[..., None] * X).sum(1) * v).sum(-1)
        value = torch.nn.functional.softplus(-Y * output).mean()
        if factored:
            value = value + EPSILON * sum(p.square().sum() for p in parameters)
        return value

    gradient = torch.func.vmap(torch.func.grad(loss))
    for _ in range(iterations):
        steps = gradient(arrays, *data)
        for array, step in zip(arrays, steps, strict=True):
            norm = torch.linalg.vector_norm(step, dim=(1, 2), keepdim=True)
            array -= 0.1 * step / (norm + EPSILON)


def agreement(problems: AttentionProblem, factored: bool, iterations: int) -> float:
    """Largest difference between `published` and the authors' loop while rounding is not all."""
    shapes = [(10, 10)] * (2 if factored else 1)
    worst = 0.0
    for seed in range(3):
        start = [a[0] for a in descent.random_weights([seed], shapes)]
        theirs = authors_loop(problems.instance(seed), iterations, factored, start)
        ours = descent.train(
            problems.instance(seed),
            "KQ" if factored else "W",
            iterations=iterations,
            gradient="published",
            initial=tuple(start) if factored else start[0],
        )
        mine = [ours.state.K, ours.state.Q] if factored else [ours.state.W]
        worst = max(worst, *(float(np.abs(a - b).max()) for a, b in zip(mine, theirs, strict=True)))
    return worst


def side_by_side(
    problems: AttentionProblem, parameterization: str, rounds: int, targets: dict[str, float]
) -> list[Row]:
    """attsvm, vmap(grad) and the authors' loop in turns; the latter on one instance a round."""
    B, iterations = len(problems), 2000
    factored = parameterization == "KQ"

    def ours(gradient: str) -> Callable[[int], Any]:
        return lambda _: descent.train(
            problems, parameterization, iterations=iterations, gradient=gradient, seeds=range(B)
        )

    ways: dict[str, Callable[[int], Any]] = {
        "attsvm, exact": ours("exact"),
        "attsvm, published": ours("published"),
        "vmap(grad)": lambda _: vmap_loop(problems, iterations, factored),
        "authors' way": lambda i: authors_loop(problems.instance(i), iterations, factored),
    }
    times: dict[str, list[float]] = {who: [] for who in ways}
    for i in range(rounds):
        for who, way in ways.items():
            seconds, _ = timed(lambda way=way, i=i: way(i))
            # The authors' loop would take minutes for all instances, and takes the same for each.
            times[who].append(seconds * (B if who == "authors' way" else 1))
    fast = times["attsvm, exact"]
    work = f"descent, {B} instances n=6 T=8 d=10, {iterations} iterations, {parameterization}"
    rows = []
    for who in ways:
        row = Row(work, who, statistics.median(times[who]))
        if who == "attsvm, published":
            # W = K Q' grows with the square of the iterations and saturates sooner.
            early = 50 if factored else 200
            apart = agreement(problems, factored, early)
            row.accuracy = f"within {apart:.0e} of the authors' loop after {early} iterations"
        if who == "authors' way":
            row.accuracy = "time of one instance × their number"
        if who != "attsvm, exact":
            row = row.beside(_measure.median_ratio(times[who], fast), targets.get(who))
        rows.append(row)
    return rows


def convergence(first: int, count: int, iterations: int) -> Row:
    """Mean correlation with the Frobenius SVM of the selected tokens, exact arithmetic."""
    seeds = range(first, first + count)
    problems = datasets.random_problems(seeds, **SIZE)
    seconds, run = timed(lambda: descent.train(problems, iterations=iterations, seeds=seeds))
    chosen = run.attention[-1].argmax(-1)
    solutions = svm.solve_many(problems.tokens, problems.queries, chosen, norm="fro")
    each = metrics.correlation(run.W[-1], np.stack([s.W for s in solutions]))
    mean = float(each.mean())
    return Row(
        f"descent, instances {first}..{first + count - 1}, {iterations} iterations, W",
        "attsvm, exact",
        seconds,
        accuracy=f"mean correlation with the SVM {mean:.5f}, median 1 − {1 - np.median(each):.0e}, "
        f"lowest {each.min():.4f}",
        target="mean ≥ 0.9999",
        reached=mean >= 0.9999,
        more={"correlations": each.tolist()},
    )


def many_instances(count: int) -> AttentionProblem:
    """Unit tokens, queries and heads of E's size, drawn at one go."""
    g = np.random.default_rng(0)
    n, T, d = SIZE.values()

    def unit(*shape: int) -> Any:
        rows = g.standard_normal(shape)
        rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
        return rows

    labels = g.choice([-1.0, 1.0], (count, n))
    return AttentionProblem(
        unit(count, n, T, d), unit(count, n, d), labels, LinearHead(unit(count, d))
    )


def one_large_run(count: int) -> dict[str, Any]:
    """Train `count` instances for 200 iterations: seconds, and gigabytes at the peak."""
    problems = many_instances(count)
    seconds, run = timed(lambda: descent.train(problems, iterations=200))
    finite = bool(np.isfinite(run.W).all())
    return {"seconds": seconds, "peak": _measure.peak_memory() / 2**30, "finite": finite}


def large(counts: list[int]) -> Row:
    """Growth in the number of instances, each size in a process of its own for its peak memory."""
    runs = [_measure.in_its_own_process(__file__, "--large", count) for count in counts]
    exponent = growth(counts, [run["seconds"] for run in runs])
    peak = runs[-1]["peak"]
    return Row(
        f"descent, {counts[-1]} instances of the same, 200 iterations, W",
        "attsvm, exact",
        runs[-1]["seconds"],
        accuracy=f"time ∝ instances^{exponent:.2f} from {counts[0]}, peak memory {peak:.2f} GB "
        "with the data",
        target="linear, < 2 GB",
        reached=exponent < 1.1 and peak < 2 and runs[-1]["finite"],
        more={"counts": counts, "runs": runs},
    )


def grows(axis: str, values: list[int]) -> Row:
    """Exponent of the time in one of n, T, d, for 20 instances and 200 iterations."""
    size = {"n": 8, "T": 8, "d": 16}
    seconds = []
    for value in values:
        problems = datasets.random_problems(range(20), **size | {axis: value})
        descent.train(problems, iterations=20)
        spent = [timed(lambda p=problems: descent.train(p, iterations=200))[0] for _ in range(3)]
        seconds.append(statistics.median(spent))
    fixed = " ".join(f"{k}={v}" for k, v in size.items() if k != axis)
    return Row(
        f"descent, growth in {axis} from {values[0]} to {values[-1]} ({fixed}), 20 instances",
        "attsvm, exact",
        seconds[-1],
        accuracy=f"time ∝ {axis}^{growth(values, seconds):.1f}",
        more={"values": values, "seconds": seconds},
    )


def run(quick: bool) -> list[Row]:
    """All rows."""
    problems = datasets.random_problems(range(100), **SIZE)
    rounds = 3 if quick else 7
    rows = side_by_side(problems, "W", rounds, {"authors' way": 80.0, "vmap(grad)": 3.0})
    rows += side_by_side(problems, "KQ", rounds, {})
    rows += [convergence(first, 100, 20_000) for first in ((0,) if quick else (0, 100, 200))]
    rows.append(large([1_000, 10_000] if quick else [1_000, 10_000, 100_000]))
    if not quick:
        rows += [grows(axis, [4, 8, 16, 32, 64]) for axis in "nT"]
        rows.append(grows("d", [8, 16, 32, 64, 128]))
    return rows


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:2] == ["--large"]:  # as `large` calls it
        print(json.dumps(one_large_run(int(sys.argv[2]))))
    else:
        _measure.main(__doc__, "descent", run)
