"""Formulas against counted parameters, counted FLOPs, bytes of real tensors."""

from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from mha_teach import MultiHeadAttention, costs


@st.composite
def sizes(draw):
    """Draw every size of a module, each given or left to its default."""
    d_k, num_kv_heads, group = (draw(st.integers(1, 7)) for _ in range(3))
    num_heads = num_kv_heads * group
    optional = {
        "d_k": d_k,
        "d_v": draw(st.integers(1, 7)),
        "num_kv_heads": num_kv_heads,
    }
    given_ones = draw(st.sets(st.sampled_from(sorted(optional))))
    d_model = draw(st.integers(1, 7))
    if "d_k" not in given_ones:
        d_model *= num_heads
    return {
        "d_model": d_model,
        "num_heads": num_heads,
        **{name: optional[name] for name in given_ones},
    }


@settings(max_examples=200, deadline=None)
@given(sizes(), st.none() | st.integers(1, 7), st.booleans())
def test_parameters_of_our_module(sizes, d_context, bias):
    module = MultiHeadAttention(**sizes, d_context=d_context, bias=bias)
    counted = sum(p.numel() for p in module.parameters())
    assert costs.parameters(**sizes, d_context=d_context, bias=bias) == counted


@pytest.mark.parametrize("bias", [True, False])
def test_parameters_of_torch(bias):
    module = nn.MultiheadAttention(21, 3, bias=bias, kdim=17, vdim=17)
    counted = sum(p.numel() for p in module.parameters())
    assert costs.parameters(21, 3, d_context=17, bias=bias) == counted


@pytest.mark.parametrize("num_heads", [1, 2, 3, 6])
def test_heads_cost_no_parameters_and_no_flops(num_heads):
    d, n = 30, 7
    assert costs.parameters(d, num_heads, bias=False) == 4 * d**2
    assert costs.parameters(d, num_heads) == 4 * d**2 + 4 * d
    assert costs.forward_flops(d, num_heads, n) == 8 * n * d**2 + 4 * n**2 * d
    assert costs.score_bytes(num_heads, n) == num_heads * costs.score_bytes(1, n)


size = st.integers(1, 5)


@settings(max_examples=50, deadline=None)
@given(sizes(), size, size, st.integers(1, 3))
def test_flops_of_trace_and_of_its_gradient(sizes, n_q, n_k, batch):
    module = MultiHeadAttention(**sizes)
    query = torch.randn(batch, n_q, module.d_model, requires_grad=True)
    context = torch.randn(batch, n_k, module.d_model, requires_grad=True)
    expected = costs.forward_flops(**sizes, n_q=n_q, n_k=n_k, batch=batch)
    with FlopCounterMode(display=False) as counter:
        output = module.trace(query, context).output
    assert counter.get_total_flops() == expected
    with FlopCounterMode(display=False) as counter:
        output.sum().backward()
    assert counter.get_total_flops() == 2 * expected


@pytest.mark.parametrize("batch", [1, 2])
def test_flops_of_other_implementations(batch):
    # The counter does not know the fused CPU kernel and would count 0 for it.
    expected = costs.forward_flops(21, 3, 5, 11, batch=batch)
    query, context = torch.randn(batch, 5, 21), torch.randn(batch, 11, 21)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        MultiHeadAttention(21, 3)(query, context)
    assert counter.get_total_flops() == expected
    theirs = nn.MultiheadAttention(21, 3, batch_first=True)
    with FlopCounterMode(display=False) as counter:
        theirs(query, context, context)
    assert counter.get_total_flops() == expected


@pytest.mark.parametrize("d_model", [6, 512])
def test_attention_overtakes_projections_at_twice_the_width(d_model):
    def attention(n):
        return costs.forward_flops(d_model, 2, n) - 8 * n * d_model**2

    def projections(n):
        return 8 * n * d_model**2

    crossover = 2 * d_model
    assert attention(crossover) == projections(crossover)
    assert attention(crossover - 1) < projections(crossover - 1)
    assert attention(crossover + 1) > projections(crossover + 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64], ids=str)
def test_score_bytes_of_a_trace(dtype):
    module = MultiHeadAttention(19, 6, d_k=7, num_kv_heads=3).to(dtype)
    trace = module.trace(
        torch.randn(2, 5, 19, dtype=dtype), torch.randn(2, 11, 19, dtype=dtype)
    )
    itemsize = max(dtype.itemsize, 4)
    expected = costs.score_bytes(6, 5, 11, batch=2, itemsize=itemsize)
    assert trace.scores.nbytes == trace.weights.nbytes == expected


@given(size, size, size, size, size, st.sampled_from([torch.float16, torch.float32]))
def test_bytes_of_real_caches(n, num_kv_heads, d_k, d_v, batch, dtype):
    module = MultiHeadAttention(
        3, 2 * num_kv_heads, d_k=d_k, d_v=d_v, num_kv_heads=num_kv_heads
    ).to(dtype)
    caches = [module.new_cache(batch, n) for _ in range(3)]
    assert costs.kv_cache_bytes(
        n,
        num_kv_heads=num_kv_heads,
        d_k=d_k,
        d_v=d_v,
        num_layers=3,
        batch=batch,
        itemsize=dtype.itemsize,
    ) == sum(cache.k.nbytes + cache.v.nbytes for cache in caches)


def test_keyword_defaults():
    assert costs.forward_flops(21, 3, 5) == costs.forward_flops(21, 3, 5, 5, batch=1)
    assert costs.score_bytes(3, 5) == 3 * 5 * 5 * 4
    assert costs.kv_cache_bytes(5, num_kv_heads=3, d_k=7) == 5 * 3 * (7 + 7) * 2


def test_nothing_costs_nothing():
    assert costs.forward_flops(21, 3, 0) == costs.forward_flops(21, 3, 5, batch=0) == 0
    assert costs.score_bytes(3, 5, 0) == 0
    assert costs.kv_cache_bytes(0, num_kv_heads=3, d_k=7) == 0


class Row(NamedTuple):
    """What papers and released weights say of a model's attention."""

    d_model: int
    num_heads: int
    num_kv_heads: int
    d_k: int
    num_layers: int
    bias: bool
    parameters: int
    cached_numbers_per_token: int | None = None


# Counted in the released models (the first has the shape of T5-small); cached numbers
# for decoders alone.
COUNTED = {
    "Transformer base": Row(512, 8, 8, 64, 18, False, 18_874_368),
    "BERT-base": Row(768, 12, 12, 64, 12, True, 28_348_416),
    "BERT-large": Row(1024, 16, 16, 64, 24, True, 100_761_600),
    "GPT-2 small": Row(768, 12, 12, 64, 12, True, 28_348_416, 18_432),
    "GPT-2 medium": Row(1024, 16, 16, 64, 24, True, 100_761_600, 49_152),
    "GPT-2 large": Row(1280, 20, 20, 64, 36, True, 236_113_920, 92_160),
    "GPT-2 XL": Row(1600, 25, 25, 64, 48, True, 491_827_200, 153_600),
    "GPT-3 175B": Row(12288, 96, 96, 128, 96, True, 57_986_777_088, 2_359_296),
    "T5-small": Row(512, 8, 8, 64, 18, False, 18_874_368),
    "T5-base": Row(768, 12, 12, 64, 36, False, 84_934_656),
    "T5-large": Row(1024, 16, 16, 64, 72, False, 301_989_888),
    "T5-3B": Row(1024, 32, 32, 128, 72, False, 1_207_959_552),
    "T5-11B": Row(1024, 128, 128, 128, 72, False, 4_831_838_208),
    "Llama 2 7B": Row(4096, 32, 32, 128, 32, False, 2_147_483_648, 262_144),
    "Llama 2 13B": Row(5120, 40, 40, 128, 40, False, 4_194_304_000, 409_600),
    "Llama 2 70B": Row(8192, 64, 8, 128, 80, False, 12_079_595_520, 163_840),
    "Llama 3 8B": Row(4096, 32, 8, 128, 32, False, 1_342_177_280, 65_536),
    "Llama 3 70B": Row(8192, 64, 8, 128, 80, False, 12_079_595_520, 163_840),
    "Llama 3.1 405B": Row(16384, 128, 8, 128, 126, False, 71_873_593_344, 258_048),
    "Mistral 7B": Row(4096, 32, 8, 128, 32, False, 1_342_177_280, 65_536),
    "Gemma 2B": Row(2048, 8, 1, 256, 18, False, 169_869_312),
    "Gemma 7B": Row(3072, 16, 16, 256, 28, False, 1_409_286_144),
    "Falcon 7B": Row(4544, 71, 1, 64, 32, False, 1_340_080_128, 4_096),
}


@pytest.mark.parametrize("row", COUNTED.values(), ids=COUNTED)
def test_counted_models(row):
    one_layer = costs.parameters(
        row.d_model,
        row.num_heads,
        d_k=row.d_k,
        num_kv_heads=row.num_kv_heads,
        bias=row.bias,
    )
    assert one_layer * row.num_layers == row.parameters
    if row.cached_numbers_per_token is not None:
        cached = costs.kv_cache_bytes(
            1,
            num_kv_heads=row.num_kv_heads,
            d_k=row.d_k,
            num_layers=row.num_layers,
            itemsize=1,
        )
        assert cached == row.cached_numbers_per_token


@pytest.mark.parametrize(("name", "record"), costs.published.items())
def test_published_records_are_the_counted_ones(name, record):
    row = COUNTED[name]
    sizes = (record.d_model, record.num_heads, record.num_kv_heads, record.d_k)
    assert (*sizes, record.num_layers) == row[:5]
    assert record.source.endswith(")")
    with pytest.raises(AttributeError):
        record.d_model = 1


def test_published_is_read_only():
    with pytest.raises(TypeError):
        costs.published["BERT-base"] = None


def test_published_caches_in_words():
    def gib(name, n):
        record = costs.published[name]
        return costs.kv_cache_bytes(
            n,
            num_kv_heads=record.num_kv_heads,
            d_k=record.d_k,
            num_layers=record.num_layers,
        ) / (2**30)

    assert gib("GPT-3 175B", 2048) == 9
    assert gib("Llama 2 70B", 4096) == 1.25
    assert gib("Mistral 7B", 4096) == 0.5
