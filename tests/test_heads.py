"""What each head adds."""

import pytest
import torch
from torch import nn

from mha_teach import MultiHeadAttention, heads, masks


@pytest.fixture
def module():
    module = MultiHeadAttention(19, 6, d_k=7, d_v=13, num_kv_heads=3)
    nn.init.normal_(module.out_proj.bias)
    return module


def test_contributions_by_hand(module):
    trace = module.trace(torch.randn(2, 5, 19), mask=masks.causal(5))
    found = heads.contributions(module, trace)
    assert found.shape == (2, 6, 5, 19)
    for b, head, i in [(0, 0, 0), (1, 5, 4), (1, 2, 3)]:
        block = module.out_proj.weight[:, 13 * head : 13 * (head + 1)]
        expected = block @ trace.head_outputs[b, head, i]
        torch.testing.assert_close(found[b, head, i], expected)


@pytest.mark.parametrize("bias", [True, False])
def test_contributions_add_up_with_the_bias_once(bias):
    module = MultiHeadAttention(21, 3, bias=bias)
    if bias:
        nn.init.normal_(module.out_proj.bias)
    trace = module.trace(torch.randn(2, 5, 21))
    total = heads.contributions(module, trace).sum(dim=1)
    rest = trace.output - total
    expected = module.out_proj.bias if bias else torch.zeros(21)
    torch.testing.assert_close(rest, expected.expand(2, 5, 21), atol=1e-6, rtol=0)


def test_contributions_of_unbatched_input(module):
    x = torch.randn(5, 19)
    alone = heads.contributions(module, module.trace(x))
    assert alone.shape == (6, 5, 19)
    in_batch = heads.contributions(module, module.trace(x[None]))
    torch.testing.assert_close(alone, in_batch[0])


def test_a_gate_multiplies_the_contribution(module):
    x, gate = torch.randn(2, 5, 19), torch.tensor([0.0, 1.0, 0.5, -1.0, 2.0, 0.3])
    whole = heads.contributions(module, module.trace(x))
    gated = heads.contributions(module, module.trace(x, head_gate=gate))
    torch.testing.assert_close(gated, whole * gate[:, None, None])


def test_contributions_in_training_are_those_of_the_output():
    module = MultiHeadAttention(21, 3, dropout=0.5, bias=False).train()
    trace = module.trace(torch.randn(2, 5, 21))
    total = heads.contributions(module, trace).sum(dim=1)
    torch.testing.assert_close(total, trace.output, atol=1e-6, rtol=0)


def test_contributions_of_a_trace_made_under_autocast(module):
    x = torch.randn(2, 5, 19)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        trace = module.trace(x)
        inside = heads.contributions(module, trace)
    outside = heads.contributions(module, trace)
    exact = heads.contributions(module, module.trace(x))
    for found in (inside, outside):
        assert found.dtype == torch.bfloat16
        torch.testing.assert_close(found.float(), exact, atol=0.02, rtol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_contributions_in_half_precision(module, dtype):
    module = module.to(dtype)
    trace = module.trace(torch.randn(2, 5, 19, dtype=dtype))
    found = heads.contributions(module, trace)
    assert found.dtype == dtype
    total = found.sum(dim=1) + module.out_proj.bias
    step = torch.finfo(dtype).eps * trace.output.abs().max()
    assert (total - trace.output).abs().max() < 4 * step
