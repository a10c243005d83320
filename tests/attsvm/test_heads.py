"""Heads: values by definition, gradients against automatic differentiation."""

import numpy as np
import pytest
import torch

from attsvm.heads import LinearHead, QuadraticHead, ReLUHead, stack_heads

RNG = np.random.default_rng(1)
HEADS = {
    "linear": lambda batch: LinearHead(RNG.normal(size=(*batch, 5))),
    "relu": lambda batch: ReLUHead(RNG.normal(size=(*batch, 5, 3))),
    "quadratic": lambda batch: QuadraticHead(RNG.normal(size=(*batch, 5)), ridge=0.3),
}


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("batch", [(), (4,)])
@pytest.mark.parametrize("middle", [(), (3,), (3, 2)])
def test_gradient_is_that_of_autograd(name, batch, middle):
    head = HEADS[name](batch)
    x = RNG.normal(size=(*batch, *middle, 5))
    tensor = torch.tensor(x, requires_grad=True)
    value = head.to(torch.as_tensor).value(tensor)
    (expected,) = torch.autograd.grad(value.sum(), tensor)
    np.testing.assert_allclose(head.value(x), value.detach().numpy(), rtol=1e-13)
    np.testing.assert_allclose(head.gradient(x), expected.numpy(), rtol=1e-12, atol=1e-13)
    assert head.gradient(x).shape == x.shape


def test_values_by_definition():
    x, v, V = RNG.normal(size=5), RNG.normal(size=5), RNG.normal(size=(5, 3))
    assert LinearHead(v).value(x) == pytest.approx(v @ x)
    assert ReLUHead(V).value(x) == pytest.approx(np.maximum(V.T @ x, 0).sum())
    assert QuadraticHead(v, 0.2).value(x) == pytest.approx(v @ x - 0.2 * x @ x)


def test_each_instance_meets_its_own_parameters():
    heads = [LinearHead(RNG.normal(size=5)) for _ in range(3)]
    x = RNG.normal(size=(3, 2, 5))
    together = stack_heads(heads).value(x)
    np.testing.assert_allclose(together, [h.value(xi) for h, xi in zip(heads, x, strict=True)])
