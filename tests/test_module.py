"""``forward``, ``trace`` and the sum of contributions equal a loop over heads."""

from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from mha_teach import (
    MultiHeadAttention,
    heads,
    masks,
    scaled_dot_product_attention,
)
from reference import (
    assert_same_gradients,
    assert_same_values,
    gradients,
    loop_over_heads,
)

BATCH, N_Q, N_K = 2, 5, 11


class Case(NamedTuple):
    """Sizes of a module and what it is called with."""

    sizes: dict = {}
    n_q: int = N_Q
    n_k: int | None = None
    mask: masks.Mask | None = None
    gate: Tensor | None = None
    value_apart: bool = False
    batched: bool = True


def scattered(*shape: int) -> Tensor:
    """Return a mask with holes, the last query of which may attend nowhere."""
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(3)) < 0.6
    mask[..., -1, :] = False
    return mask


CASES = {
    "self": Case(),
    "no bias": Case({"bias": False}),
    "cross": Case(n_k=N_K),
    "value apart from key": Case(n_k=N_K, value_apart=True),
    "context of another width": Case({"d_context": 17}, n_k=N_K),
    "causal": Case(mask=masks.causal(N_Q)),
    "causal, more keys": Case(n_k=N_K, mask=masks.causal(N_Q, N_K)),
    "causal, more queries": Case(n_q=N_K, n_k=N_Q, mask=masks.causal(N_K, N_Q)),
    "causal, one query": Case(n_q=1, n_k=N_K, mask=masks.causal(1, N_K)),
    "padding": Case(mask=masks.padding([3, 5], N_Q)),
    "padding, one sequence empty": Case(mask=masks.padding([0, 5], N_Q)),
    "window": Case(mask=masks.window(N_Q, 2)),
    "causal and padding": Case(
        mask=masks.combine(masks.causal(N_Q), masks.padding([3, 5], N_Q))
    ),
    "a mask for all": Case(n_k=N_K, mask=scattered(N_Q, N_K)),
    "a mask per head": Case(n_k=N_K, mask=scattered(1, 3, N_Q, N_K)),
    "a mask per sequence": Case(n_k=N_K, mask=scattered(BATCH, 1, N_Q, N_K)),
    "a mask per both": Case(n_k=N_K, mask=scattered(BATCH, 3, N_Q, N_K)),
    "a mask over queries": Case(mask=scattered(BATCH, 3, N_Q, 1)),
    "grouped queries": Case({"num_heads": 6, "num_kv_heads": 3, "d_k": 7}),
    "one key head": Case({"num_kv_heads": 1}, mask=masks.causal(N_Q)),
    "wide values": Case({"d_v": 13}, mask=masks.causal(N_Q)),
    "inner width of its own": Case({"d_model": 19, "d_k": 7}),
    "gate": Case(gate=torch.tensor([0.0, 1.0, 0.3])),
    "gate per sequence": Case(gate=torch.tensor([[0.0, 1.0, 0.3], [2.0, 0.5, 0.0]])),
    "unbatched": Case(batched=False, mask=masks.causal(N_Q)),
    "unbatched, a mask per head": Case(batched=False, mask=scattered(1, 3, N_Q, N_Q)),
    "unbatched, cross and gate": Case(
        n_k=N_K, gate=torch.tensor([0.2, 0.0, 1.0]), batched=False
    ),
    "everything": Case(
        {
            "d_model": 19,
            "num_heads": 6,
            "num_kv_heads": 3,
            "d_k": 7,
            "d_v": 13,
            "d_context": 17,
        },
        n_k=N_K,
        mask=scattered(BATCH, 6, N_Q, N_K),
        gate=torch.linspace(-1, 1, 12).view(BATCH, 6),
        value_apart=True,
    ),
}


def build(sizes: dict, dtype: torch.dtype) -> MultiHeadAttention:
    """Make a module whose biases are not zero."""
    module = MultiHeadAttention(**{"d_model": 21, "num_heads": 3} | sizes).to(dtype)
    for name, parameter in module.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter)
    return module


def inputs(case: Case, module: MultiHeadAttention, dtype: torch.dtype) -> list[Tensor]:
    """Draw one, two or three tensors: query, key, value."""
    shapes = [(case.n_q, module.d_model)]
    if case.n_k is not None:
        shapes.append((case.n_k, module.d_context))
    if case.value_apart:
        shapes.append((case.n_k, module.d_context))
    batch = (BATCH,) if case.batched else ()
    return [
        torch.randn(*batch, *shape, dtype=dtype, requires_grad=True) for shape in shapes
    ]


def by_loop(case: Case, module: MultiHeadAttention, tensors: list[Tensor]) -> Tensor:
    """Spell out every default, then add up the heads in the reference."""
    query, *rest = tensors
    key = rest[0] if rest else query
    value = rest[1] if len(rest) == 2 else key
    batch, n_q, n_k = (BATCH if case.batched else 1), case.n_q, key.shape[-2]
    mask = torch.ones(1, 1, n_q, n_k) > 0 if case.mask is None else case.mask
    mask = masks.as_tensor(mask).expand(batch, module.num_heads, n_q, n_k)
    gate = torch.ones(module.num_heads) if case.gate is None else case.gate
    gate = gate.to(query.dtype).expand(batch, module.num_heads)
    if case.batched:
        return loop_over_heads(module, query, key, value, mask, gate)
    stacked = (query[None], key[None], value[None])
    return loop_over_heads(module, *stacked, mask, gate)[0]


def through_forward(module, tensors, mask, gate):
    return module(*tensors, mask=mask, head_gate=gate)


def through_trace(module, tensors, mask, gate):
    return module.trace(*tensors, mask=mask, head_gate=gate).output


def through_contributions(module, tensors, mask, gate):
    trace = module.trace(*tensors, mask=mask, head_gate=gate)
    total = heads.contributions(module, trace).sum(dim=-3)
    return total if module.out_proj.bias is None else total + module.out_proj.bias


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize(
    "path", [through_forward, through_trace, through_contributions]
)
def test_equals_a_loop_over_heads(path, case, dtype):
    module = build(case.sizes, dtype)
    tensors = inputs(case, module, dtype)
    gate = None if case.gate is None else case.gate.to(dtype)
    found = path(module, tensors, case.mask, gate)
    expected = by_loop(case, module, tensors)
    assert_same_values(found, expected)
    sources = tensors + list(module.parameters())
    assert_same_gradients(gradients(found, sources), gradients(expected, sources))


def test_trace_shows_every_intermediate():
    module = build(
        {"num_heads": 6, "num_kv_heads": 3, "d_k": 7, "d_v": 13}, torch.float32
    )
    query, key = torch.randn(BATCH, N_Q, 21), torch.randn(BATCH, N_K, 21)
    mask = scattered(BATCH, 6, N_Q, N_K)
    trace = module.trace(query, key, mask=mask)
    assert trace.q.shape == (BATCH, 6, N_Q, 7)
    assert trace.k.shape == (BATCH, 3, N_K, 7)
    assert trace.v.shape == (BATCH, 3, N_K, 13)
    assert trace.scores.shape == trace.weights.shape == (BATCH, 6, N_Q, N_K)
    assert trace.head_outputs.shape == (BATCH, 6, N_Q, 13)
    assert trace.output.shape == (BATCH, N_Q, 21)

    for b, head, i, j in [(0, 0, 0, 0), (1, 5, 3, 10), (1, 2, 4, 6)]:
        q, k = trace.q[b, head, i], trace.k[b, head // 2, j]
        score = (q * k).sum() / 7**0.5
        torch.testing.assert_close(trace.scores[b, head, i, j], score)
    for weights, allowed in zip(trace.weights[0, 0], mask[0, 0], strict=True):
        assert torch.all(weights[~allowed] == 0)
        assert weights.sum().item() == pytest.approx(float(allowed.any()), abs=1e-6)
    average = trace.weights[1, 3] @ trace.v[1, 1]
    torch.testing.assert_close(trace.head_outputs[1, 3], average)


def test_trace_of_unbatched_input_drops_the_batch_axis_throughout():
    module = build({}, torch.float32)
    x = torch.randn(N_Q, 21)
    alone, in_batch = module.trace(x), module.trace(x[None])
    for name, tensor in alone._asdict().items():
        torch.testing.assert_close(tensor, getattr(in_batch, name)[0], msg=name)


def test_head_outputs_are_gated():
    module = build({}, torch.float32)
    x = torch.randn(BATCH, N_Q, 21)
    gate = torch.tensor([0.0, 1.0, 0.3])
    gated = module.trace(x, head_gate=gate).head_outputs
    whole = module.trace(x).head_outputs
    torch.testing.assert_close(gated, whole * gate[:, None, None])
    assert torch.all(gated[:, 0] == 0)


def test_split_and_merge_are_inverse_and_follow_one_number():
    x = torch.randn(BATCH, N_Q, 21)
    split = MultiHeadAttention.split_heads(x, 3)
    assert split.shape == (BATCH, 3, N_Q, 7)
    assert split[1, 2, 4, 5] == x[1, 4, 2 * 7 + 5]
    assert torch.equal(MultiHeadAttention.merge_heads(split), x)


@pytest.mark.parametrize("lead", [(), (2,), (2, 3)], ids=str)
def test_split_and_merge_leave_leading_axes_alone(plain, lead):
    x = torch.randn(*lead, N_Q, 21)
    split = plain.MultiHeadAttention.split_heads(x, 3)
    assert split.shape == (*lead, 3, N_Q, 7)
    assert torch.equal(split[..., 2, 4, 5], x[..., 4, 2 * 7 + 5])
    assert torch.equal(plain.MultiHeadAttention.merge_heads(split), x)


@pytest.mark.parametrize("bias", [True, False])
def test_parameters_have_the_documented_shapes(bias):
    module = MultiHeadAttention(
        19, 6, d_k=7, d_v=13, num_kv_heads=3, d_context=17, bias=bias
    )
    shapes = {
        "q_proj.weight": (42, 19),
        "k_proj.weight": (21, 17),
        "v_proj.weight": (39, 17),
        "out_proj.weight": (19, 78),
    }
    if bias:
        widths = {name: shape[0] for name, shape in shapes.items()}
        shapes |= {n.replace("weight", "bias"): (w,) for n, w in widths.items()}
    found = {name: tuple(p.shape) for name, p in module.named_parameters()}
    assert found == shapes


def test_defaults_and_print():
    module = MultiHeadAttention(21, 3)
    assert (module.d_k, module.d_v, module.num_kv_heads, module.d_context) == (
        7,
        7,
        3,
        21,
    )
    sizes = "d_model=21, num_heads=3, d_k=7, d_v=7, num_kv_heads=3"
    assert str(module).startswith(f"MultiHeadAttention(\n  {sizes}\n")
    module = MultiHeadAttention(21, 3, d_context=17, dropout=0.1)
    assert f"  {sizes}, d_context=17, dropout=0.1\n" in str(module)


@st.composite
def problems(draw):
    """Draw sizes from 0 or 1 up, a mask that may hide whole rows, and a gate."""
    size, width = st.integers(0, 4), st.integers(1, 5)
    batch, n_q, n_k = draw(size), draw(size), draw(size)
    num_kv_heads, group = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    sizes = {
        "d_model": draw(width),
        "num_heads": num_kv_heads * group,
        "num_kv_heads": num_kv_heads,
        "d_k": draw(width),
        "d_v": draw(width),
        "d_context": draw(width),
    }
    torch.manual_seed(draw(st.integers(0, 2**32)))
    full = (batch, sizes["num_heads"], n_q, n_k)
    shape = [draw(st.sampled_from([1, size])) for size in full]
    mask = torch.rand(shape) < draw(st.sampled_from([0.2, 0.7]))
    mask = draw(st.sampled_from([None, mask, masks.causal(n_q, n_k)]))
    return sizes, batch, n_q, n_k, mask


@settings(max_examples=200, deadline=None)
@given(problems())
def test_forward_equals_trace_at_any_size(problem):
    sizes, batch, n_q, n_k, mask = problem
    module = build(sizes, torch.float64)
    double = {"dtype": torch.float64, "requires_grad": True}
    query = torch.randn(batch, n_q, module.d_model, **double)
    key = torch.randn(batch, n_k, module.d_context, **double)
    trace = module.trace(query, key, mask=mask)
    output = module(query, key, mask=mask)
    torch.testing.assert_close(output, trace.output, atol=1e-12, rtol=0)
    sources = [query, key, *module.parameters()]
    for one, other in zip(
        gradients(output, sources), gradients(trace.output, sources), strict=True
    ):
        torch.testing.assert_close(one, other, atol=1e-11, rtol=0)
    rows = trace.weights.sum(dim=-1)
    assert torch.all(((rows - 1).abs() < 1e-12) | (rows == 0))


def test_a_trace_shows_shapes_and_not_numbers():
    mha = MultiHeadAttention(15, 3, d_k=2, d_v=7, num_kv_heads=1)
    assert repr(mha.trace(torch.randn(11, 15))) == (
        "AttentionTrace(q=(3, 11, 2), k=(1, 11, 2), v=(1, 11, 7), "
        "scores=(3, 11, 11), weights=(3, 11, 11), head_outputs=(3, 11, 7), "
        "output=(11, 15))"
    )
    q = torch.randn(2, 5)
    assert repr(scaled_dot_product_attention(q, q, q)) == (
        "AttentionResult(output=(2, 5), weights=(2, 2))"
    )
