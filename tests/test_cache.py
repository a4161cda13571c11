"""Decoding through a cache gives the rows of the full causal pass."""

import copy
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_teach import KVCache, MultiHeadAttention, masks

BATCH, N = 2, 11
SIZES = {
    "equal": {},
    "grouped, wide values": {"num_heads": 6, "num_kv_heads": 3, "d_k": 7, "d_v": 13},
    "one key head": {"num_kv_heads": 1},
    "inner width of its own": {"d_model": 19, "d_k": 7},
}
each_size = pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)


def build(**sizes):
    return MultiHeadAttention(**{"d_model": 21, "num_heads": 3} | sizes).eval()


def decode_all(module, x, chunks, mask=None, max_length=13):
    """Decode x chunk by chunk; a mask over the whole sequence is cut to fit."""
    cache = module.new_cache(x.shape[0] if x.dim() == 3 else 1, max_length)
    outputs, start = [], 0
    for size in chunks:
        end = start + size
        part = None if mask is None else mask[..., start:end, :end]
        outputs.append(module.decode(x[..., start:end, :], cache, part))
        assert cache.length == end
        start = end
    assert start == x.shape[-2]
    return torch.cat(outputs, dim=-2)


@each_size
@pytest.mark.parametrize("chunks", [[1] * N, [N], [5, 1, 1, 4], [1, 7, 0, 3]], ids=str)
def test_equals_the_full_causal_pass(chunks, sizes):
    module = build(**sizes)
    x = torch.randn(BATCH, N, module.d_model)
    expected = module(x, mask=masks.causal(N))
    found = decode_all(module, x, chunks)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    "shape", [(N, N), (BATCH, 1, N, N), (1, 3, N, N), (BATCH, 3, N, N)], ids=str
)
def test_a_mask_adds_to_causality(shape):
    module, x = build(), torch.randn(BATCH, N, 21)
    mask = torch.rand(shape) < 0.5
    mask[..., 4, :] = False
    expected = module(x, mask=masks.combine(masks.causal(N), mask))
    found = decode_all(module, x, [5, 1, 1, 4], mask)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    assert torch.equal(found[:, 4], module.out_proj.bias.expand(BATCH, 21))


def test_padding_on_the_left():
    module, x = build(), torch.randn(BATCH, N, 21)
    real = masks.padding([3, N], N).flip(-1)
    found = decode_all(module, x, [5, 1, 5], real.expand(-1, -1, N, -1))
    alone = module(x[0, -3:], mask=masks.causal(3))
    torch.testing.assert_close(found[0, -3:], alone, atol=1e-6, rtol=0)


def test_a_named_mask_is_accepted():
    module, x = build(), torch.randn(BATCH, 5, 21)
    cache = module.new_cache(BATCH, 7)
    module.decode(x[:, :2], cache, masks.causal(2))
    found = module.decode(x[:, 2:], cache, masks.causal(3, 5))
    expected = module(x, mask=masks.causal(5))[:, 2:]
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


def test_unbatched():
    module, x = build(), torch.randn(N, 21)
    found = decode_all(module, x, [5, 1, 5])
    assert found.shape == (N, 21)
    expected = module(x, mask=masks.causal(N))
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.integers(0, 3))
def test_any_chunks_of_any_batch(chunks, batch):
    module, n = build(num_kv_heads=1, d_v=5), sum(chunks)
    x = torch.randn(batch, n, 21)
    found = decode_all(module, x, chunks, max_length=n)
    expected = module(x, mask=masks.causal(n))
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_new_cache_has_room_and_the_dtype_of_the_module(dtype):
    module = build(**SIZES["grouped, wide values"]).to(dtype)
    cache = module.new_cache(batch_size=2, max_length=17)
    assert cache.k.shape == (2, 3, 17, 7)
    assert cache.v.shape == (2, 3, 17, 13)
    assert cache.k.dtype == cache.v.dtype == dtype
    assert (cache.length, cache.max_length) == (0, 17)
    x = torch.randn(2, 5, 21, dtype=dtype)
    expected = module(x, mask=masks.causal(5))
    tolerance = max(2 * torch.finfo(dtype).eps, 1e-12)
    found = decode_all(module, x, [3, 1, 1])
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)


def test_stores_what_trace_shows():
    module, x = build(num_kv_heads=1, d_v=13), torch.randn(BATCH, 5, 21)
    cache = module.new_cache(BATCH, 7)
    module.decode(x[:, :2], cache)
    module.decode(x[:, 2:], cache)
    trace = module.trace(x)
    torch.testing.assert_close(cache.k[:, :, :5], trace.k)
    torch.testing.assert_close(cache.v[:, :, :5], trace.v)


def test_append_returns_views_of_everything_stored():
    cache = KVCache(torch.zeros(2, 3, 7, 5), torch.zeros(2, 3, 7, 13))
    for n_new in (2, 1):
        k_new, v_new = torch.randn(2, 3, n_new, 5), torch.randn(2, 3, n_new, 13)
        k, v = cache.append(k_new, v_new)
        assert torch.equal(k[:, :, -n_new:], k_new)
        assert torch.equal(v[:, :, -n_new:], v_new)
        assert k.data_ptr() == cache.k.data_ptr()
    assert cache.length == k.shape[2] == v.shape[2] == 3


def test_a_cache_equals_itself_alone():
    cache = build().new_cache(BATCH, 5)
    assert cache in [cache]
    assert cache not in [copy.deepcopy(cache)]


def test_append_does_not_broadcast(plain):
    cache = plain.KVCache(torch.zeros(3, 2, 5, 7), torch.zeros(3, 2, 5, 13))
    k_new, v_new = torch.ones(3, 2, 1, 7), torch.ones(3, 2, 1, 13)
    for wrong in [(k_new[:1, :1], v_new), (k_new, v_new[:1]), (k_new, v_new[..., :1])]:
        with pytest.raises(ValueError, match="but this cache needs"):
            cache.append(*wrong)
    assert cache.length == 0
    assert not cache.k.any()
    assert not cache.v.any()


def test_append_stores_nothing_that_does_not_fit():
    cache = KVCache(torch.zeros(2, 3, 5, 7), torch.zeros(2, 3, 5, 13))
    with pytest.raises(ValueError, match="length=0 plus 11 new exceeds max_length=5"):
        cache.append(torch.ones(2, 3, 11, 7), torch.ones(2, 3, 11, 13))
    assert cache.length == 0
    assert not cache.k.any()
    assert not cache.v.any()


def test_a_cache_on_another_device_is_left_unchanged():
    module, elsewhere = build(), build().to("meta")
    cache = elsewhere.new_cache(BATCH, 5)
    with pytest.raises(ValueError, match="cache is on meta, but x_new is on cpu"):
        module.decode(torch.randn(BATCH, 1, 21), cache)
    assert cache.length == 0


def test_in_training_decode_drops_weights_too():
    module, x = build(dropout=0.5).train(), torch.randn(BATCH, N, 21)
    dropped = decode_all(module, x, [N])
    expected = module.eval()(x, mask=masks.causal(N))
    assert not torch.allclose(dropped, expected, atol=1e-3)
    torch.testing.assert_close(decode_all(module, x, [N]), expected)


def test_no_gradient():
    module, x = build(), torch.randn(BATCH, 5, 21, requires_grad=True)
    cache = module.new_cache(BATCH, 5)
    output = module.decode(x, cache)
    assert not output.requires_grad
    assert not cache.k.requires_grad
    assert torch.is_grad_enabled()


def test_autocast():
    module, x = build(), torch.randn(BATCH, 5, 21)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = decode_all(module, x, [3, 1, 1])
    expected = module(x, mask=masks.causal(5))
    torch.testing.assert_close(found.float(), expected, atol=0.02, rtol=0)


def wrong_calls():
    """Name calls that fail on a module of d_model 21 with 3 of 5 places filled."""
    one = torch.randn(BATCH, 1, 21)
    return {
        "no room": (torch.randn(BATCH, 3, 21), None),
        "another batch size": (torch.randn(5, 1, 21), None),
        "another width": (torch.randn(BATCH, 1, 17), None),
        "unbatched": (torch.randn(1, 21), None),
        "another dtype": (one.double(), None),
        "another device": (one.to("meta"), None),
        "mask on another device": (
            one,
            torch.ones(1, 4, dtype=torch.bool, device="meta"),
        ),
        "mask too short": (one, torch.ones(1, 3, dtype=torch.bool)),
        "mask of three axes": (one, torch.ones(BATCH, 1, 4, dtype=torch.bool)),
        "mask of numbers": (one, torch.ones(1, 4)),
        "causal of another size": (one, masks.causal(1, 3)),
    }


@pytest.mark.parametrize(("x_new", "mask"), wrong_calls().values(), ids=wrong_calls())
def test_an_error_leaves_the_cache_unchanged(plain, x_new, mask):
    module = plain.MultiHeadAttention(21, 3)
    cache = module.new_cache(BATCH, 5)
    module.decode(torch.randn(BATCH, 3, 21), cache)
    if isinstance(mask, masks.Causal):
        mask = plain.masks.causal(mask.n_q, mask.n_k)
    before = copy.deepcopy(cache)
    with pytest.raises((TypeError, ValueError)):
        module.decode(x_new, cache, mask)
    assert cache.length == before.length == 3
    assert torch.equal(cache.k[:, :, :3], before.k[:, :, :3])
    assert torch.equal(cache.v[:, :, :3], before.v[:, :, :3])
    expected = "length=3 plus 3 new exceeds max_length=5"
    with pytest.raises(ValueError, match=re.escape(expected)):
        module.decode(torch.randn(BATCH, 3, 21), cache)
    module.decode(torch.randn(BATCH, 2, 21), cache)


def test_a_cache_of_another_module_is_refused():
    module, x = build(), torch.randn(BATCH, 1, 21)
    others = [build(d_v=13), build(num_kv_heads=1), build().double()]
    for other in others:
        cache = other.new_cache(BATCH, 5)
        with pytest.raises(ValueError, match="new_cache"):
            module.decode(x, cache)
        assert cache.length == 0
