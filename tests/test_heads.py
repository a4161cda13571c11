"""What each head does, and what it adds."""

import copy
import math

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


# Heads switched off


def test_a_gate_is_0_at_the_heads_named_and_1_elsewhere():
    assert heads.ablate(5, [1, 3]).tolist() == [1, 0, 1, 0, 1]
    assert heads.ablate(5, []).tolist() == [1] * 5
    assert heads.ablate(3, range(3)).tolist() == [0] * 3
    assert heads.ablate(3, (head for head in (2, 2))).tolist() == [1, 1, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_an_ablated_head_adds_nothing_on_either_path(module, dtype):
    module = module.to(dtype)
    x, gate = torch.randn(2, 5, 19, dtype=dtype), heads.ablate(6, [0, 4])
    trace = module.trace(x, mask=masks.causal(5), head_gate=gate)
    assert not heads.contributions(module, trace)[:, [0, 4]].any()
    cut = copy.deepcopy(module)
    with torch.no_grad():
        cut.out_proj.weight.unflatten(-1, (6, 13))[:, [0, 4]] = 0
    for path in (module, cut):
        output = path(x, mask=masks.causal(5), head_gate=gate)
        torch.testing.assert_close(output, trace.output)
    torch.testing.assert_close(cut(x, mask=masks.causal(5)), trace.output)


def test_all_heads_off_leave_the_bias(module):
    output = module(torch.randn(2, 5, 19), head_gate=heads.ablate(6, range(6)))
    assert torch.equal(output, module.out_proj.bias.expand(2, 5, 19))


# How evenly a head spreads its weights


def spread_weights(*shape, dtype=torch.float32):
    return torch.randn(shape, dtype=dtype).mul(3).softmax(dim=-1)


def test_entropy_by_hand():
    weights = spread_weights(2, 3, 5, 7)
    found = heads.entropy(weights)
    assert found.shape == (2, 3)
    for b, head in [(0, 0), (1, 2)]:
        rows = weights[b, head].tolist()
        each = [-sum(w * math.log(w) for w in row) for row in rows]
        assert found[b, head].item() == pytest.approx(sum(each) / 5, abs=1e-5)


def test_entropy_is_zero_for_one_key_and_ln_n_for_all():
    sure = torch.eye(7)[None]
    even = torch.full((1, 7, 7), 1 / 7)
    found = heads.entropy(torch.cat([sure, even]))
    torch.testing.assert_close(found, torch.tensor([0.0, math.log(7)]))
    assert math.copysign(1, heads.entropy(torch.ones(1, 1)).item()) == 1


def test_entropy_grows_with_the_temperature(module):
    scores = module.trace(torch.randn(2, 5, 19)).scores
    cold, warm = (heads.entropy((scores / t).softmax(-1)) for t in (0.1, 1))
    assert (cold < warm).all()
    assert (warm < math.log(5)).all()


def test_a_query_that_may_attend_nowhere_does_not_count():
    mask = torch.tensor([[True, True, True], [False, False, False]])
    scores = torch.zeros(2, 3)
    weights = torch.where(mask, scores.softmax(dim=-1), 0.0)
    for given in (None, mask):
        torch.testing.assert_close(
            heads.entropy(weights, given), torch.tensor(math.log(3))
        )
    assert heads.entropy(weights[1:]).isnan()


def test_padded_queries_are_left_out(module):
    x = torch.randn(2, 5, 19)
    pad = masks.padding([5, 3], 5)
    weights = module.trace(x, mask=pad).weights
    found = heads.entropy(weights, pad & pad.mT)
    alone = module.trace(x[1:, :3]).weights
    torch.testing.assert_close(found[0], heads.entropy(weights[:1])[0])
    torch.testing.assert_close(found[1], heads.entropy(alone)[0])
    assert not torch.allclose(found[1], heads.entropy(weights, pad)[1])


def test_entropy_with_each_kind_of_mask():
    causal = masks.causal(3, 5)
    mask = causal.tensor()
    scores = torch.randn(2, 4, 3, 5).masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    expected = heads.entropy(weights)
    for given in (causal, mask, mask[None, None], mask.expand(2, 4, 3, 5)):
        torch.testing.assert_close(heads.entropy(weights, given), expected)


def test_entropy_of_unbatched_weights(module):
    x = torch.randn(5, 19)
    alone = heads.entropy(module.trace(x).weights)
    assert alone.shape == (6,)
    torch.testing.assert_close(alone, heads.entropy(module.trace(x[None]).weights)[0])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_entropy_in_half_precision(dtype):
    """Of weights in few digits, over many keys: added up in float32."""
    weights = torch.full((1, 3, 2048), 1 / 2048, dtype=dtype)
    found = heads.entropy(weights)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, torch.tensor([math.log(2048)]))
    weights = spread_weights(2, 3, 5, 7)
    exact = heads.entropy(weights)
    found = heads.entropy(weights.to(dtype))
    assert (found - exact).abs().max() < 4 * torch.finfo(dtype).eps
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(heads.entropy(weights), exact)


def test_entropy_in_float64_keeps_its_precision():
    weights = spread_weights(3, 5, 7, dtype=torch.float64)
    found = heads.entropy(weights)
    assert found.dtype == torch.float64
    expected = torch.special.entr(weights).sum(-1).mean(-1)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)


def test_entropy_has_the_gradient_of_its_formula():
    scores = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: heads.entropy(s.softmax(-1)), scores)


def test_a_weight_of_zero_has_a_finite_gradient():
    scores = torch.tensor([[0.0, 1.0, float("-inf")]], requires_grad=True)
    heads.entropy(scores.softmax(dim=-1)).backward()
    assert scores.grad.isfinite().all()
    assert scores.grad[0, 0] > 0 > scores.grad[0, 1]


@pytest.mark.parametrize("shape", [(0, 3, 5, 5), (2, 3, 0, 5), (2, 3, 5, 0)], ids=str)
def test_entropy_of_nothing(shape):
    found = heads.entropy(torch.zeros(shape))
    assert found.shape == shape[:2]
    assert found.isnan().all()
