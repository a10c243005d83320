"""``attsvm train``: gradient descent on a problem of your own, held against the attention SVM."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from attsvm.commands import FAILED, OK, Commands, add, problems
from attsvm.commands.solve import with_files
from attsvm.errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np

    from attsvm.heads import Head

__all__ = ["register"]

DESCRIPTION = """\
Train attention weights by gradient descent on the logistic loss, see which tokens they select, and
hold their direction against the attention SVM of those tokens.

The file, .npz (numpy.savez) or .json (an object of nested lists), holds
  tokens   (n, T, d)  n sequences of T tokens in dimension d
  queries  (n, d)     one for each sequence
  labels   (n,)       each -1 or 1
  v        (d,)       the head h(x) = v'x; with a number `ridge` h(x) = v'x - ridge |x|^2
  V        (d, m)     instead of v: the head of m ReLU units, the sum of max(0, V_j'x)
  mask     (n, T)     optional: true where a token exists
  W        (d, d)     optional: where to start; K and Q, each (d, m), for --parameterization KQ
What `attsvm solve` reads may be there too: one file can serve both.
"""
EPILOG = """\
Exit codes: 0 trained, and the SVM of the selected tokens has a certified solution; 1 it has none,
or the weights diverged; 2 the file or an option is not as described, or the device is not there.
"""
OPTIONAL = ["v", "V", "ridge", "mask", "W", "K", "Q"]
PASSED = ["step", "iterations", "gradient", "rule", "ridge", "width", "device", "progress"]
OPTIONS: list[tuple[str, dict[str, Any], str]] = [
    ("parameterization", {"choices": ["W", "KQ"], "default": "W"}, "what is trained (default: W)"),
    ("iterations", {"type": int, "default": 2000, "metavar": "N"}, "steps (default: 2000)"),
    ("step", {"type": float, "default": 0.1}, "length of a step (default: 0.1)"),
    ("rule", {"choices": ["normalized", "decaying", "plain", "polyak"], "default": "normalized"},
     "how the step's length follows the gradient (default: normalized)"),
    ("gradient", {"choices": ["exact", "published"], "default": "exact"},
     "arithmetic: without saturation, or as the authors' code has it (default: exact)"),
    ("ridge", {"type": float, "metavar": "NUMBER"}, "weight of a penalty on W"),
    ("width", {"type": int, "metavar": "M"}, "columns of K and Q (default: d)"),
    ("seed", {"type": int, "metavar": "N"}, "start at random weights of this seed (default: W = 0; "
     "for KQ, where zero is a stationary point, seed 0)"),
    ("norm", {"choices": ["fro", "nuc"]}, "of the SVM to compare with (default: fro for W, nuc for "
     "KQ)"),
    ("device", {"default": "cpu"}, "a torch device, e.g. cuda (default: cpu)"),
    ("progress", {"action": "store_true"}, "show a bar"),
]  # fmt: skip


def register(commands: Commands) -> None:
    """Add the command."""
    summary = "Train attention on a problem in a file."
    parser = add(commands, "train", run, summary, DESCRIPTION, EPILOG)
    parser.add_argument("problem", metavar="FILE", help="the problem, .npz or .json")
    for name, more, text in OPTIONS:
        parser.add_argument(f"--{name}", **more, help=text)
    with_files(parser)


def run(options: argparse.Namespace) -> int:
    """Train, compare, report, write."""
    from attsvm import descent, metrics, selection, svm
    from attsvm.problem import AttentionProblem

    arrays = problems.read(options.problem, ["tokens", "queries", "labels"], OPTIONAL, ["selected"])
    n, T, d = problems.token_shape(arrays)
    problem = AttentionProblem(
        arrays["tokens"], arrays["queries"], arrays["labels"], _head(arrays), arrays.get("mask")
    )
    initial, seed, start = _start(options, arrays)
    _require_device(options.device)
    trained = descent.train(
        problem,
        options.parameterization,
        initial=initial,
        seeds=seed,
        keep=("W", "attention", "loss") + (("K", "Q") if options.parameterization == "KQ" else ()),
        **{name: getattr(options, name) for name in PASSED},
    )
    if trained.W is None or trained.attention is None or trained.loss is None:
        raise ArgumentError("keep", "weights, attention and loss", "a run without them")
    W, attention = trained.W[-1], trained.attention[-1]
    selected = selection.selected_tokens(attention)
    norm = options.norm or {"W": "fro", "KQ": "nuc"}[options.parameterization]
    data = (problem.tokens, problem.queries, selected)
    solution = svm.solve(*data, norm=norm, mask=problem.mask, on_infeasible="return")
    optimal = selected == selection.optimal_tokens(problem)
    # Without a solution there are no support tokens to compare with.
    local = None
    if solution.solved:
        local = selection.locally_optimal(problem, selected, solution.support())
    comparable = solution.solved and bool(W.any()) and bool(solution.W.any())
    correlation = float(metrics.correlation(W, solution.W)) if comparable else float("nan")
    record: dict[str, Any] = {
        "iterations": int(trained.iterations[-1]),
        "parameterization": options.parameterization,
        "W": W,
        "attention": attention,
        "loss": float(trained.loss[-1]),
        "selected": selected,
        "optimal": optimal,
        "correlation": correlation,
    }
    if trained.K is not None and trained.Q is not None:
        record |= {"K": trained.K[-1], "Q": trained.Q[-1]}
    if local is not None:
        record["locally_optimal"] = local
    found = problems.solution_record(solution)
    flat = {f"svm_{name}": value for name, value in found.items()}
    problems.write(record | {"svm": found}, options.json, None)
    problems.write(record | flat, None, options.npz)
    weakest = attention.max(-1)
    least = f"{weakest.min():.6g} on the selected token, in sequence {int(weakest.argmin())}"
    lines = {
        "trained": f"{options.parameterization}, {options.iterations} steps from {start}",
        "loss": f"{record['loss']:.10g}",
        "selected": problems.listed(selected),
        "attention": f"at least {least}",
        "optimal": f"{int(optimal.sum())} of {n} selected tokens have the highest score",
    }
    if local is not None:
        verdict = "locally optimal" if local.all() else "not locally optimal"
        lines["local"] = f"{int(local.sum())} of {n} outscore their support tokens: {verdict}"
    print(f"{options.problem}: {n} sequences of {T} tokens in dimension {d}")
    print("\n".join(problems.line(name, text) for name, text in lines.items()))
    print(f"Attention SVM of the selected tokens ({norm}):")
    print("\n".join(problems.solution_report(solution)))
    said = f"{correlation:.10g}" if comparable else "not defined"
    print(problems.line("correlation", f"{said} between the trained W and the SVM solution"))
    return OK if solution.solved else FAILED


def _head(arrays: dict[str, np.ndarray]) -> Head:
    from attsvm import _checks, heads

    given = [name for name in ("v", "V") if name in arrays]
    if len(given) != 1:
        raise ArgumentError("problem", "an array v or an array V", " and ".join(given) or "neither")
    d = arrays["tokens"].shape[2]
    if "V" in arrays:
        if "ridge" in arrays:
            raise ArgumentError("ridge", "none with V", "both")
        V = _checks.array("V", arrays["V"])
        if V.ndim != 2 or V.shape[0] != d or not V.shape[1]:
            raise ArgumentError("V", f"shape ({d}, m)", f"shape {V.shape}")
        return heads.ReLUHead(V)
    v = _checks.array("v", arrays["v"], shape=(d,))
    if "ridge" not in arrays:
        return heads.LinearHead(v)
    if arrays["ridge"].ndim:
        raise ArgumentError("ridge", "a number", f"shape {arrays['ridge'].shape}")
    return heads.QuadraticHead(v, float(arrays["ridge"]))


def _start(options: argparse.Namespace, arrays: dict[str, np.ndarray]) -> tuple[Any, Any, str]:
    """Initial weights, seed and words for where a run starts."""
    names = {"W": ["W"], "KQ": ["K", "Q"]}[options.parameterization]
    given = [name for name in ("W", "K", "Q") if name in arrays]
    if given:
        if given != names:
            expected = f"initial {' and '.join(names)}, or none"
            raise ArgumentError("problem", expected, " and ".join(given))
        if options.seed is not None:
            expected = "none where the file says where to start"
            raise ArgumentError("seed", expected, str(options.seed))
        start = [arrays[name] for name in names]
        return start[0] if len(start) == 1 else tuple(start), None, "the weights in the file"
    seed = options.seed
    if seed is None and options.parameterization == "KQ":
        seed = 0
    return None, seed, "W = 0" if seed is None else f"random weights of seed {seed}"


def _require_device(device: str) -> None:
    """Refuse a device that torch does not find here, before it fails somewhere deep."""
    import torch

    try:
        torch.zeros(1, dtype=torch.float64, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        # AssertionError is how torch says that it was built without the device.
        reason = str(error).strip().splitlines()[0]
        here = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
        expected = f"one of this machine ({', '.join(here)})"
        raise ArgumentError("device", expected, f"{device!r} ({reason})") from error
