"""Gradient descent on the attention weights, many instances side by side (Section 2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attsvm import _checks
from attsvm._typing import ArrayLike, FloatArray
from attsvm.descent import _arithmetic, _compiled_steps, _rules
from attsvm.descent._compiled_steps import CompiledSteps
from attsvm.descent._layer import Factored, Full, Layer, Weights
from attsvm.descent._records import Measure, Record, Recorder, Snapshot, Trajectory, checked_keep
from attsvm.descent._settings import Settings, StepSize
from attsvm.descent._start import Initial, State, starting_state
from attsvm.descent._torch_steps import TorchSteps
from attsvm.errors import ArgumentError, AttsvmError
from attsvm.problem import AttentionProblem

# Token numbers of one chunk: its tensors then stay in the second-level cache.
_CHUNK_NUMBERS = 100_000


class DivergedError(AttsvmError):
    """The weights left the range of floats, as they do with too long a plain step."""


def train(
    problem: AttentionProblem,
    parameterization: str = "W",
    step: StepSize = 0.1,
    iterations: int = 2000,
    gradient: str = "exact",
    rule: str | _rules.Rule = "normalized",
    ridge: float | None = None,
    width: int | None = None,
    initial: Initial | None = None,
    seeds: ArrayLike | None = None,
    record: Record | None = None,
    keep: Sequence[str] = ("W", "attention"),
    measure: Mapping[str, Measure] | None = None,
    target: ArrayLike | None = None,
    log_ridge: float | None = None,
    device: str = "cpu",
    engine: str = "torch",
    progress: bool = False,
    chunk: int | None = None,
) -> Trajectory:
    """Train attention weights by gradient descent on the logistic loss, with the head fixed.

    The loss of an instance is L = (1/n) Σ_i log(1 + exp(−Y_i h(X_i' S(X_i W z_i)))).  Instances are
    independent: an instance's run does not depend on what else is in the batch.  torch runs on one
    thread meanwhile: products as small as the paper's gain nothing from more, on a busy machine
    threads that wait for each other cost ten times the work, and one thread rounds alike on every
    machine.  To use many cores, run chunks of instances in processes (`experiments.run`).

    Parameters
    ----------
    problem
        One instance or many, tokens (…, n, T, d).
    parameterization
        "W", or "KQ" for W = K Q' with K, Q (…, d, m).
    step
        Step size η > 0, or a function of the iteration k = 0, 1, ….
    iterations
        Number of updates; 0 gives the start.
    gradient
        "exact": no saturation, whatever the size of the weights.  "published": the authors' float64
        arithmetic, including ε = 2.22e-16 in every gradient norm.
    rule
        "normalized": η g/‖g‖_F, K and Q each with its own norm.  "decaying": the same with
        η/√(k+1).  "plain": η g.  "polyak": η (L − L*) g/‖g‖², see `Polyak`.  Or a `Rule`.
        At a stationary point (g = 0 exactly) no rule moves.
    ridge
        λ ≥ 0 of a penalty λ‖W‖² or λ(‖K‖² + ‖Q‖²) added to the loss.  None: 0 for W and
        2.22e-16 for (K, Q), as in the authors' code; 0 under the Polyak rule.
    width
        m for "KQ"; None: that of `initial`, or d.
    initial
        W (d, d) or (…, d, d); a pair (K, Q) likewise; or the `state` of an earlier trajectory,
        whose iteration count goes on.  None without `seeds`: W = 0.
    seeds
        Non-negative integers, one for each instance: start at weights U(±1/√d) of a generator of
        that seed.
    record
        Iterations to record: a predicate (`every`, `at`), a sequence of iterations, or None for the
        last only.  The last is always recorded.  Iteration k is the state after k updates.
    keep
        What to keep of them: of "W", "K", "Q", "logits", "attention", "loss", "log_gradient_norm".
    measure
        Functions of a `Snapshot`, by name: their answers (B, …) are kept in `Trajectory.measures`,
        so that long runs need not store weights.
    target
        L*, a number or (…), for the Polyak rule; None: mean ℓ(max_t γ_it), for the linear head.
    log_ridge
        log λ instead of `ridge`, for a penalty below the smallest float.
    device
        A torch device.
    engine
        "torch": any head, rule and device.  "compiled": machine code for the processor, some five
        times as fast, for the heads of `attsvm.heads` and the rules "normalized", "decaying" and
        "plain"; needs numba, which compiles it once on a machine.  The two round differently.
        "fastest": compiled where it can, else torch.
    progress
        Show a bar.
    chunk
        Instances to work on at a time; None chooses.  Results are the same bit for bit.

    Raises
    ------
    ArgumentError
        If an argument is not one of those described, or arguments contradict each other.
    DivergedError
        If weights become infinite or NaN.
    """
    if not isinstance(problem, AttentionProblem):
        raise ArgumentError("problem", "an AttentionProblem", type(problem).__name__)
    _checks.choice("parameterization", parameterization, ("W", "KQ"))
    iterations = _checks.integer("iterations", iterations, low=0)
    _checks.choice("engine", engine, ("fastest", "compiled", "torch"))
    settings = Settings.of(
        problem, parameterization, step, gradient, rule, ridge, log_ridge, target
    )
    names, measures = checked_keep(keep, parameterization), dict(measure or {})
    try:
        where = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ArgumentError("device", "a torch device", repr(device)) from error
    obstacle = _compiled_steps.obstacle(settings, problem, where)
    if engine == "compiled" and obstacle:
        raise ArgumentError("engine", "one that can do this", f"compiled, but {obstacle}")
    compiled = engine != "torch" and not obstacle

    batch = problem.batch_shape
    start = starting_state(parameterization, batch, problem.d, width, initial, seeds)
    flat = _flatten(problem)
    count = len(flat)
    if chunk is None:
        chunk = max(1, _CHUNK_NUMBERS // (problem.n * problem.T * problem.d))
    chunk = _checks.integer("chunk", chunk, low=1)
    stop = start.iteration + iterations
    recorder = Recorder(record, start.iteration, stop, count)
    final = {n: v.reshape(count, *v.shape[-2:]).copy() for n, v in start.arrays.items()}
    with _bar(progress, count * iterations) as bar:
        run = _Run(
            settings, compiled, start.iteration, recorder, names, measures, where, bar.update
        )
        for first in range(0, count, chunk):
            rows = slice(first, min(first + chunk, count))
            part = flat if rows == slice(0, count) else flat.instance(rows)
            run.advance_chunk(part, {name: value[rows] for name, value in final.items()}, rows)

    state = State(stop, **{n: v.reshape(*batch, *v.shape[1:]) for n, v in final.items()})
    return Trajectory(
        recorder.iterations,
        state,
        **recorder.collected(names, batch),
        measures=recorder.collected(measures, batch),
    )


def _flatten(problem: AttentionProblem) -> AttentionProblem:
    """The same problem with exactly one instance axis."""
    batch = problem.batch_shape
    if len(batch) == 1:
        return problem
    count = math.prod(batch)

    def flat(array: np.ndarray) -> np.ndarray:
        return array.reshape(count, *array.shape[len(batch) :])

    # A single instance gets the axis too, and its head: products then round as they do in a batch.
    shared = batch and not problem.head.batch_shape
    return problem.mapped(flat, problem.head if shared else problem.head.to(flat))


def _bar(shown: bool, total: int) -> Any:
    """A tqdm bar, in a notebook a widget; one that is not shown stays silent."""
    if shown:
        from tqdm.auto import tqdm
    else:
        from tqdm.std import tqdm
    return tqdm(total=total, unit="it", unit_scale=True, desc="descent", disable=not shown)


@contextmanager
def _one_thread() -> Iterator[None]:
    """One torch thread inside; the caller's setting afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class _Run:
    """What all chunks of a run have in common."""

    settings: Settings
    compiled: bool
    start: int
    recorder: Recorder
    keep: tuple[str, ...]
    measures: Mapping[str, Measure]
    device: torch.device
    report: Callable[[int], Any]

    def advance_chunk(
        self, problem: AttentionProblem, arrays: dict[str, FloatArray], rows: slice
    ) -> None:
        """Take one chunk from the first iteration to the last; its arrays change in place."""
        layer = Layer.of(problem, self.device)
        tensors = {name: torch.tensor(value, device=self.device) for name, value in arrays.items()}
        weights: Weights = Full(**tensors) if "W" in tensors else Factored(**tensors)
        optimum = None
        if self.settings.target is not None:
            optimum = torch.as_tensor(self.settings.target[rows], device=self.device)
        steps: CompiledSteps | TorchSteps = (
            CompiledSteps(self.settings, problem)
            if self.compiled
            else TorchSteps(self.settings, layer, optimum)
        )
        at = self.start
        with torch.no_grad(), _one_thread():
            for stop in (int(k) for k in self.recorder.iterations):
                while at < stop:
                    goal = min(stop, at + 100)
                    steps.take(weights, [self.settings.length(k) for k in range(at, goal)])
                    self.report((goal - at) * problem.batch_shape[0])
                    at = goal
                self._record(layer, weights, weights.logits(layer), stop, rows)
        for name, tensor in tensors.items():
            arrays[name][...] = tensor.cpu().numpy()
            finite = np.isfinite(arrays[name]).all((-2, -1))
            if not finite.all():
                bad = rows.start + int(finite.argmin())
                raise DivergedError(
                    f"{name} of instance {bad} left the range of floats; shorten the step"
                )

    def _record(
        self, layer: Layer, weights: Weights, logits: Tensor, iteration: int, rows: slice
    ) -> None:
        """Store what was asked of one iteration."""
        attention = _arithmetic.softmax(logits)
        made: dict[str, Callable[[], Tensor]] = {
            "W": weights.matrix,
            "K": lambda: weights.arrays[0],
            "Q": lambda: weights.arrays[1],
            "logits": lambda: logits,
            "attention": lambda: attention,
            "loss": lambda: _arithmetic.logistic(layer.margins(attention)).mean(-1),
            "log_gradient_norm": lambda: self._log_norm(layer, weights, logits),
        }
        for name in self.keep:
            self.recorder.put(name, iteration, rows, made[name]().cpu().numpy())
        if self.measures:
            names = ["W", "logits", "attention"] + ["K", "Q"] * isinstance(weights, Factored)
            copies = {name: made[name]().cpu().numpy().copy() for name in names}
            snapshot = Snapshot(iteration, rows, **copies)
            for name, function in self.measures.items():
                self.recorder.put(name, iteration, rows, function(snapshot))

    def _log_norm(self, layer: Layer, weights: Weights, logits: Tensor) -> Tensor:
        """log ‖∇L‖ over all parameter arrays together."""
        inner = self.settings.logit_gradient(layer, logits.clone(), None)
        squares = [g.square().sum((-2, -1)) for g in weights.gradients(layer, inner.p)]
        return inner.log_scale + 0.5 * torch.stack(squares).sum(0).log()
