"""Every message of the core, word for word, and every ``raise`` reached by one."""

import ast
import traceback
from pathlib import Path

import pytest
import torch
from torch import nn

import mha_teach

CORE = ["_checks", "_kernels", "attention", "cache", "costs", "heads", "masks"]


def bools(*shape):
    return torch.ones(shape, dtype=torch.bool)


def sdpa(p, q=(5, 7), k=(11, 7), v=(11, 13), mask=None, **options):
    """Call the free function with tensors of these shapes, or with what is given."""
    q, k, v = (torch.randn(x) if isinstance(x, tuple) else x for x in (q, k, v))
    return p.scaled_dot_product_attention(q, k, v, mask, **options)


def build(p, d_model=21, num_heads=3, **sizes):
    return p.MultiHeadAttention(d_model, num_heads, **sizes)


def call(p, query=(3, 5, 21), key=None, value=None, *, sizes=None, **kwargs):
    """Call a module of three heads with tensors of these shapes."""
    tensors = [
        torch.randn(x) if isinstance(x, tuple) else x for x in (query, key, value)
    ]
    return build(p, **(sizes or {}))(*tensors, **kwargs)


def decode(p, x_new=(3, 1, 21), mask=None, *, sizes=None, cache=None):
    module = build(p, **(sizes or {}))
    cache = cache or module.new_cache(3, 5)
    return module.decode(torch.randn(x_new), cache, mask)


def from_torch(p, **kwargs):
    return p.MultiHeadAttention.from_torch(nn.MultiheadAttention(21, 3, **kwargs))


class OwnAttention(nn.MultiheadAttention):
    """What ``from_torch`` cannot know."""


def meta(*shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device="meta")


def full_cache(p):
    cache = build(p).new_cache(3, 5)
    build(p).decode(torch.randn(3, 4, 21), cache)
    return cache


# id: (call, kind of error, message)
ERRORS = {
    # building a module
    "512 in 12 heads": (
        lambda p: p.MultiHeadAttention(512, 12),
        ValueError,
        "d_model=512 is not divisible by num_heads=12; pass d_k=… or use one of "
        "[2, 4, 8, 16] heads",
    ),
    "float d_model": (
        lambda p: p.MultiHeadAttention(21.0, 3),
        TypeError,
        "d_model must be an int, got 21.0",
    ),
    "bool num_kv_heads": (
        lambda p: build(p, num_kv_heads=True),
        TypeError,
        "num_kv_heads must be an int, got True",
    ),
    "no head": (
        lambda p: p.MultiHeadAttention(21, 0),
        ValueError,
        "num_heads=0 must be at least 1",
    ),
    "negative d_v": (
        lambda p: build(p, d_v=-1),
        ValueError,
        "d_v=-1 must be at least 1",
    ),
    "dropout of 1": (
        lambda p: build(p, dropout=1.0),
        ValueError,
        "dropout=1.0 is out of range; use 0 <= dropout < 1",
    ),
    "dropout as text": (
        lambda p: build(p, dropout="0.1"),
        TypeError,
        "dropout must be a number, got '0.1'",
    ),
    "dropout as a tensor": (
        lambda p: build(p, dropout=torch.tensor(0.5)),
        TypeError,
        "dropout must be a number, got tensor(0.5000)",
    ),
    "dropout as a switch": (
        lambda p: build(p, dropout=False),
        TypeError,
        "dropout must be a number, got False",
    ),
    "no width at all": (
        lambda p: p.MultiHeadAttention(None, None),
        TypeError,
        "d_model must be an int, got None",
    ),
    "bias as text": (
        lambda p: build(p, bias="no"),
        TypeError,
        "bias must be True or False, got 'no'",
    ),
    "4 key heads for 6": (
        lambda p: build(p, 42, 6, num_kv_heads=4),
        ValueError,
        "num_kv_heads=4 does not divide num_heads=6; use one of [1, 2, 3, 6]",
    ),
    # the free function
    "list for q": (
        lambda p: sdpa(p, q=[[1.0]]),
        TypeError,
        "q must be a torch.Tensor, got list",
    ),
    "token ids for k": (
        lambda p: sdpa(p, k=torch.arange(11)),
        TypeError,
        "k must be floating point, got torch.int64; embed token ids, or convert with "
        ".float()",
    ),
    "mask for v": (
        lambda p: sdpa(p, v=bools(5, 11)),
        TypeError,
        "v must hold vectors, got a mask; pass it as mask=…",
    ),
    "v without width": (
        lambda p: sdpa(p, v=(11,)),
        ValueError,
        "v has shape (11,); it needs at least two axes, (…, tokens, width)",
    ),
    "v more precise than q and k": (
        lambda p: sdpa(p, v=torch.randn(11, 13, dtype=torch.float64)),
        TypeError,
        "q, k and v are torch.float32, torch.float32 and torch.float64; convert them "
        "to one dtype",
    ),
    "v on another device": (
        lambda p: sdpa(p, v=meta(11, 13)),
        ValueError,
        "v is on meta, but q is on cpu; pass v.to(q.device)",
    ),
    "free mask on another device": (
        lambda p: sdpa(p, mask=meta(5, 11, dtype=torch.bool)),
        ValueError,
        "mask is on meta, but q is on cpu; pass mask.to(q.device)",
    ),
    "q wider than k": (
        lambda p: sdpa(p, q=(5, 6)),
        ValueError,
        "q has d_k=6 but k has d_k=7; a dot product needs equal widths, so project "
        "both to one d_k",
    ),
    "empty dot product": (
        lambda p: sdpa(p, q=(5, 0), k=(11, 0)),
        ValueError,
        "q and k have d_k=0; a dot product needs at least one term",
    ),
    "key without value": (
        lambda p: sdpa(p, v=(10, 13)),
        ValueError,
        "k has 11 tokens and v has 10; every key needs its value",
    ),
    "fewer key heads": (
        lambda p: sdpa(p, (2, 6, 5, 7), (2, 3, 11, 7), (2, 3, 11, 13)),
        ValueError,
        "q, k and v differ in their leading axes: (2, 6), (2, 3), (2, 3); expand them "
        "to one shape",
    ),
    "3-D mask for 4-D q": (
        lambda p: sdpa(p, (2, 3, 5, 7), (2, 3, 11, 7), (2, 3, 11, 13), bools(2, 5, 11)),
        ValueError,
        "mask of shape (2, 5, 11) has 3 axes, but q has 4; pass a 2-D mask (n_q, n_k), "
        "or one with an axis (perhaps of size 1) for each axis of q",
    ),
    "mask over queries for keys": (
        lambda p: sdpa(p, mask=bools(11, 5)),
        ValueError,
        "mask of shape (11, 5) should be (n_q, n_k)=(5, 11); for one row per sequence "
        "use masks.padding(lengths, n_k)",
    ),
    "mask of another batch": (
        lambda p: sdpa(p, (2, 5, 7), (2, 11, 7), (2, 11, 13), bools(3, 5, 11)),
        ValueError,
        "mask of shape (3, 5, 11) does not broadcast to the scores (2, 5, 11); each "
        "axis must agree or be 1",
    ),
    # calling a module
    "token ids": (
        lambda p: call(p, torch.ones(3, 5, dtype=torch.long)),
        TypeError,
        "query must be floating point, got torch.int64; embed token ids, or convert "
        "with .float()",
    ),
    "list for key": (
        lambda p: call(p, key=[[1.0] * 21]),
        TypeError,
        "key must be a torch.Tensor, got list",
    ),
    "mask by position": (
        lambda p: call(p, key=bools(5, 5)),
        TypeError,
        "key must hold vectors, got a mask; pass it as mask=…",
    ),
    "named mask by position": (
        lambda p: call(p, key=(3, 5, 21), value=p.masks.causal(5)),
        TypeError,
        "value must hold vectors, got a mask; pass it as mask=…",
    ),
    "1-D query": (
        lambda p: call(p, (21,)),
        ValueError,
        "query has shape (21,); use (n, d_model) or (batch, n, d_model)",
    ),
    "narrow query": (
        lambda p: call(p, (3, 5, 20)),
        ValueError,
        "query has width 20, but this module was built with d_model=21",
    ),
    "narrow context": (
        lambda p: call(p, key=(3, 11, 21), sizes={"d_context": 17}),
        ValueError,
        "key has width 21, but this module was built with d_context=17",
    ),
    "precise query": (
        lambda p: call(p, torch.randn(3, 5, 21, dtype=torch.float64)),
        TypeError,
        "query is torch.float64, but this module holds torch.float32; pass "
        "query.to(torch.float32) or convert the module",
    ),
    "coarse value": (
        lambda p: call(p, key=(3, 11, 21), value=torch.randn(3, 11, 21).bfloat16()),
        TypeError,
        "value is torch.bfloat16, but this module holds torch.float32; pass "
        "value.to(torch.float32) or convert the module",
    ),
    "key on another device": (
        lambda p: call(p, key=meta(3, 11, 21)),
        ValueError,
        "key is on meta, but query is on cpu; pass key.to(query.device)",
    ),
    "mask on another device": (
        lambda p: call(p, mask=meta(5, 5, dtype=torch.bool)),
        ValueError,
        "mask is on meta, but query is on cpu; pass mask.to(query.device)",
    ),
    "gate on another device": (
        lambda p: call(p, head_gate=meta(3)),
        ValueError,
        "head_gate is on meta, but query is on cpu; pass head_gate.to(query.device)",
    ),
    "d_v mismatch": (
        lambda p: call(p, key=(3, 11, 21), value=(3, 11, 13)),
        ValueError,
        "value has width 13, but this module was built with d_context=21",
    ),
    "value without key": (
        lambda p: call(p, value=(3, 5, 21)),
        ValueError,
        "value was given without key; pass both, or key alone to use it as both",
    ),
    "no key for another context": (
        lambda p: call(p, sizes={"d_context": 17}),
        ValueError,
        "key is needed: this module has d_context=17 and d_model=21, so the query "
        "cannot be its own context",
    ),
    "key longer than value": (
        lambda p: call(p, key=(3, 11, 21), value=(3, 7, 21)),
        ValueError,
        "key has 11 tokens and value has 7; every key needs its value",
    ),
    "unbatched key": (
        lambda p: call(p, key=(11, 21)),
        ValueError,
        "query, key and value have 3, 2 and 2 axes; give all of them a batch axis, or "
        "none",
    ),
    "another batch of keys": (
        lambda p: call(p, key=(2, 11, 21)),
        ValueError,
        "query, key and value have batch sizes 3, 2, 2; they must be equal",
    ),
    "mask per sequence, as many sequences as heads": (
        lambda p: call(p, mask=bools(3, 5, 5)),
        ValueError,
        "mask of shape (3, 5, 5) is ambiguous: its first axis could be batch or head; "
        "pass mask[:, None] for (batch, n_q, n_k) or mask[None] for (head, n_q, n_k)",
    ),
    "3-D mask without batch": (
        lambda p: call(p, (5, 21), mask=bools(3, 5, 5)),
        ValueError,
        "mask of shape (3, 5, 5) is ambiguous: its first axis could be batch or head; "
        "pass mask[:, None] for (batch, n_q, n_k) or mask[None] for (head, n_q, n_k)",
    ),
    "1-D mask": (
        lambda p: call(p, mask=bools(5)),
        ValueError,
        "mask of shape (5,) has 1 axes; use 2, (n_q, n_k), or 4, broadcastable to "
        "(batch, head, n_q, n_k)",
    ),
    "(batch, n_k) mask": (
        lambda p: call(p, mask=bools(3, 5)),
        ValueError,
        "mask of shape (3, 5) should be (n_q, n_k)=(5, 5); for one row per sequence "
        "use masks.padding(lengths, n_k)",
    ),
    "mask of more heads": (
        lambda p: call(p, mask=bools(1, 4, 5, 5)),
        ValueError,
        "mask of shape (1, 4, 5, 5) does not broadcast to the scores (3, 3, 5, 5); "
        "each axis must agree or be 1",
    ),
    "causal of another size": (
        lambda p: call(p, key=(3, 11, 21), mask=p.masks.causal(5)),
        ValueError,
        "mask is causal(5, 5), but there are n_q=5 queries and n_k=11 keys; pass "
        "masks.causal(5, 11)",
    ),
    "float mask": (
        lambda p: call(p, mask=torch.zeros(5, 5)),
        TypeError,
        "mask must be bool (True = may attend), got torch.float32; an additive mask "
        "becomes bool by mask == 0",
    ),
    "integer mask": (
        lambda p: call(p, mask=torch.ones(5, 5, dtype=torch.long)),
        TypeError,
        "mask must be bool (True = may attend), got torch.int64; a mask of 1 and 0 "
        "becomes bool by mask == 1",
    ),
    "list for a mask": (
        lambda p: call(p, mask=[[True]]),
        TypeError,
        "mask must be a bool tensor (True = may attend) or masks.causal(…), got list; "
        "pass torch.tensor(mask, dtype=torch.bool)",
    ),
    "gate of more heads": (
        lambda p: call(p, head_gate=torch.ones(4)),
        ValueError,
        "head_gate has shape (4,); use (3,) or (3, 3), one number a head",
    ),
    "gate per sequence, unbatched": (
        lambda p: call(p, (5, 21), head_gate=torch.ones(1, 3)),
        ValueError,
        "head_gate has shape (1, 3); use (3,), one number a head",
    ),
    "bool gate": (
        lambda p: call(p, head_gate=bools(3)),
        TypeError,
        "head_gate must be floating point, got torch.bool; convert with .float()",
    ),
    # heads cut and joined
    "split a list": (
        lambda p: p.MultiHeadAttention.split_heads([1.0], 3),
        TypeError,
        "x must be a torch.Tensor, got list",
    ),
    "split into a fraction of heads": (
        lambda p: p.MultiHeadAttention.split_heads(torch.ones(5, 21), 3.0),
        TypeError,
        "num_heads must be an int, got float (3.0)",
    ),
    "split 20 in 3": (
        lambda p: p.MultiHeadAttention.split_heads(torch.ones(5, 20), 3),
        ValueError,
        "x of shape (5, 20) does not split into num_heads=3; use (…, n, width) with a "
        "width that num_heads divides",
    ),
    "merge without heads": (
        lambda p: p.MultiHeadAttention.merge_heads(torch.ones(5, 7)),
        ValueError,
        "x has shape (5, 7); it needs at least three axes, (…, head, n, width)",
    ),
    # to and from PyTorch
    "from_torch of a Linear": (
        lambda p: p.MultiHeadAttention.from_torch(nn.Linear(2, 3)),
        TypeError,
        "from_torch needs an nn.MultiheadAttention, got Linear",
    ),
    "from_torch of a subclass": (
        lambda p: p.MultiHeadAttention.from_torch(OwnAttention(21, 3)),
        TypeError,
        "test_errors.OwnAttention is a subclass of nn.MultiheadAttention and may keep "
        "its weights elsewhere; load them into an nn.MultiheadAttention first",
    ),
    "kdim and vdim": (
        lambda p: from_torch(p, kdim=17, vdim=13),
        ValueError,
        "kdim=17 and vdim=13 differ; here key and value share one width, d_context",
    ),
    "add_bias_kv": (
        lambda p: from_torch(p, add_bias_kv=True),
        ValueError,
        "add_bias_kv=True has no counterpart here; build without it",
    ),
    "add_zero_attn": (
        lambda p: from_torch(p, add_zero_attn=True),
        ValueError,
        "add_zero_attn=True has no counterpart here; build without it",
    ),
    "to_torch of groups": (
        lambda p: build(p, num_kv_heads=1).to_torch(),
        ValueError,
        "num_kv_heads=1 is less than num_heads=3; nn.MultiheadAttention needs them "
        "equal",
    ),
    "to_torch of wide values": (
        lambda p: build(p, d_v=13).to_torch(),
        ValueError,
        "d_v=13 differs from d_k=7; nn.MultiheadAttention needs them equal",
    ),
    "to_torch of another inner width": (
        lambda p: build(p, 19, 3, d_k=7).to_torch(),
        ValueError,
        "num_heads * d_k = 3 * 7 differs from d_model=19; nn.MultiheadAttention needs "
        "them equal",
    ),
    # decoding
    "decode without its own context": (
        lambda p: decode(p, sizes={"d_context": 17}),
        ValueError,
        "decode attends to its own tokens, but this module has d_context=17 and "
        "d_model=21; use forward instead",
    ),
    "decode a narrow token": (
        lambda p: decode(p, (3, 1, 20)),
        ValueError,
        "x_new has width 20, but this module was built with d_model=21",
    ),
    "decode another batch": (
        lambda p: decode(p, (2, 1, 21)),
        ValueError,
        "cache has (batch, num_kv_heads, d_k, d_v)=(3, 3, 7, 7), but x_new and this "
        "module need (2, 3, 7, 7); make it with module.new_cache(2, …)",
    ),
    "decode after converting": (
        lambda p: decode(p, cache=build(p).double().new_cache(3, 5)),
        ValueError,
        "cache holds torch.float64, but this module holds torch.float32; call "
        "new_cache after converting the module",
    ),
    "decode without a cache": (
        lambda p: build(p).decode(torch.randn(3, 1, 21), None),
        TypeError,
        "cache must be a KVCache, got NoneType; make one with "
        "module.new_cache(batch_size, max_length)",
    ),
    "decode after moving": (
        lambda p: decode(p, cache=build(p).to("meta").new_cache(3, 5)),
        ValueError,
        "cache is on meta, but x_new is on cpu; call new_cache after moving the module",
    ),
    "decode with a mask on another device": (
        lambda p: decode(p, mask=meta(1, 1, dtype=torch.bool)),
        ValueError,
        "mask is on meta, but x_new is on cpu; pass mask.to(x_new.device)",
    ),
    "append to one head and sequence": (
        lambda p: build(p).new_cache(3, 5).append(*torch.randn(2, 1, 1, 4, 7)),
        ValueError,
        "k_new has shape (1, 1, 4, 7), but this cache needs (3, 3, 4, 7)",
    ),
    "append without batch and heads": (
        lambda p: build(p).new_cache(3, 5).append(*torch.randn(2, 4, 7)),
        ValueError,
        "k_new has shape (4, 7), but this cache needs (3, 3, 4, 7)",
    ),
    "append fewer values than keys": (
        lambda p: (
            build(p)
            .new_cache(3, 5)
            .append(torch.randn(3, 3, 4, 7), torch.randn(3, 3, 1, 7))
        ),
        ValueError,
        "v_new has shape (3, 3, 1, 7), but this cache needs (3, 3, 4, 7)",
    ),
    "cache overflow": (
        lambda p: decode(p, (3, 2, 21), cache=full_cache(p)),
        ValueError,
        "cache is full: length=4 plus 2 new exceeds max_length=5; call new_cache with "
        "max_length=6 or more",
    ),
    "decode with a short mask": (
        lambda p: decode(p, (3, 1, 21), bools(1, 4), cache=full_cache(p)),
        ValueError,
        "mask of shape (1, 4) should be (n_q, n_k)=(1, 5); for one row per sequence "
        "use masks.padding(lengths, n_k)",
    ),
    "cache of negative length": (
        lambda p: build(p).new_cache(3, -1),
        ValueError,
        "max_length=-1 is negative; a size is 0 or more",
    ),
    # masks
    "causal of a negative size": (
        lambda p: p.masks.causal(5, -1),
        ValueError,
        "n_k=-1 is negative; a size is 0 or more",
    ),
    "causal of a float": (
        lambda p: p.masks.causal(5.0),
        TypeError,
        "n_q must be an int, got float (5.0)",
    ),
    "window of no key": (
        lambda p: p.masks.window(5, 0),
        ValueError,
        "width=0 leaves no key; use width=1 or more",
    ),
    "padding by floats": (
        lambda p: p.masks.padding([1.5, 2.0], 5),
        TypeError,
        "lengths must be one integer per sequence, got torch.float32 of shape (2,); "
        "pass e.g. padding([3, 5], n_k=5)",
    ),
    "padding by a mask": (
        lambda p: p.masks.padding(bools(5), 5),
        TypeError,
        "lengths must be one integer per sequence, got torch.bool of shape (5,); "
        "pass e.g. padding([3, 5], n_k=5)",
    ),
    "padding by a table": (
        lambda p: p.masks.padding(torch.tensor([[3]]), 5),
        TypeError,
        "lengths must be one integer per sequence, got torch.int64 of shape (1, 1); "
        "pass e.g. padding([3, 5], n_k=5)",
    ),
    "padding by nothing": (
        lambda p: p.masks.padding(None, 5),
        TypeError,
        "lengths must be one integer per sequence, got None; pass e.g. padding([3, 5], "
        "n_k=5)",
    ),
    "padding by complex numbers": (
        lambda p: p.masks.padding([1j], 5),
        TypeError,
        "lengths must be one integer per sequence, got torch.complex64 of shape (1,); "
        "pass e.g. padding([3, 5], n_k=5)",
    ),
    "padding without data": (
        lambda p: p.masks.padding(meta(3, dtype=torch.long), 5),
        ValueError,
        "lengths is on meta; pass a tensor that holds data",
    ),
    "padding longer than the keys": (
        lambda p: p.masks.padding([3, 7], 5),
        ValueError,
        "lengths contains 7, but there are n_k=5 keys; each length must lie between 0 "
        "and n_k",
    ),
    "combine nothing": (
        lambda p: p.masks.combine(),
        ValueError,
        "combine() needs at least one mask, got none",
    ),
    "combine three axes": (
        lambda p: p.masks.combine(bools(3, 5, 5), p.masks.causal(5)),
        ValueError,
        "mask of shape (3, 5, 5) is neither (n_q, n_k) nor (batch, head, n_q, n_k); "
        "for (batch, n_q, n_k) pass mask[:, None]",
    ),
    "combine other sizes": (
        lambda p: p.masks.combine(p.masks.causal(5), bools(2, 1, 1, 7)),
        ValueError,
        "masks of shapes (5, 5), (2, 1, 1, 7) do not broadcast together; each axis "
        "must agree or be 1",
    ),
    "combine devices": (
        lambda p: p.masks.combine(
            p.masks.causal(5), bools(5, 5), meta(5, 5, dtype=torch.bool)
        ),
        ValueError,
        "masks are on cpu and meta; move them to one device",
    ),
    "combine a float": (
        lambda p: p.masks.combine(torch.zeros(5, 5)),
        TypeError,
        "mask must be bool (True = may attend), got torch.float32; an additive mask "
        "becomes bool by mask == 0",
    ),
    "to_torch_mha of three axes": (
        lambda p: p.masks.to_torch_mha(bools(3, 5, 5)),
        ValueError,
        "mask of shape (3, 5, 5) is neither (n_q, n_k) nor (batch, head, n_q, n_k); "
        "for (batch, n_q, n_k) pass mask[:, None]",
    ),
    "to_torch_mha without a size": (
        lambda p: p.masks.to_torch_mha(bools(2, 1, 5, 5)),
        ValueError,
        "mask has size 1 in place of num_heads; pass num_heads=…",
    ),
    "to_torch_mha of a negative size": (
        lambda p: p.masks.to_torch_mha(bools(2, 1, 5, 5), num_heads=-1),
        ValueError,
        "num_heads=-1 is negative; a size is 0 or more",
    ),
    "to_torch_mha of half a head": (
        lambda p: p.masks.to_torch_mha(bools(2, 1, 5, 5), num_heads=1.5),
        TypeError,
        "num_heads must be an int, got float (1.5)",
    ),
    "to_torch_mha against the mask": (
        lambda p: p.masks.to_torch_mha(bools(2, 3, 5, 5), batch_size=7),
        ValueError,
        "batch_size=7 contradicts the mask, which has 2",
    ),
    # heads
    "a scale for each query": (
        lambda p: sdpa(p, scale=torch.ones(5, 1)),
        TypeError,
        "scale must be one number, got Tensor; pass a float, or None for 1/√d_k",
    ),
    "a scale of nan": (
        lambda p: sdpa(p, scale=float("nan")),
        ValueError,
        "scale=nan makes every score nan or infinite",
    ),
    "contributions the other way round": (
        lambda p: p.heads.contributions(build(p).trace(torch.randn(5, 21)), build(p)),
        TypeError,
        "module must be a MultiHeadAttention, got AttentionTrace; pass the module that "
        "made the trace",
    ),
    "contributions of an output": (
        lambda p: p.heads.contributions(build(p), build(p)(torch.randn(5, 21))),
        TypeError,
        "trace must be an AttentionTrace, got Tensor; make one with module.trace(…)",
    ),
    "contributions of another module's trace": (
        lambda p: p.heads.contributions(
            build(p, num_heads=7), build(p).trace(torch.randn(5, 21))
        ),
        ValueError,
        "the trace has num_heads=3 and d_v=7, the module num_heads=7 and d_v=3; pass "
        "the module that made the trace",
    ),
    "entropy of a list": (
        lambda p: p.heads.entropy([[1.0]]),
        TypeError,
        "weights must be a torch.Tensor, got list",
    ),
    "entropy of integers": (
        lambda p: p.heads.entropy(torch.eye(3).long()),
        TypeError,
        "weights must be floating point, got torch.int64; pass the weights of a trace",
    ),
    "entropy without data": (
        lambda p: p.heads.entropy(meta(3, 5)),
        ValueError,
        "weights is on meta; pass a tensor that holds data",
    ),
    "entropy of one row": (
        lambda p: p.heads.entropy(torch.ones(1)),
        ValueError,
        "weights has shape (1,); it needs at least two axes, (…, query, key)",
    ),
    "entropy of scores": (
        lambda p: p.heads.entropy(torch.tensor([[0.5, 0.5], [3.0, -2.0]])),
        ValueError,
        "weights has a row with sum 1 and smallest entry -2; pass weights after "
        "softmax and before dropout",
    ),
    "entropy of dropped weights": (
        lambda p: p.heads.entropy(torch.tensor([[0.75, 0.0], [0.5, 0.5]])),
        ValueError,
        "weights has a row with sum 0.75 and smallest entry 0; pass weights after "
        "softmax and before dropout",
    ),
    "entropy under another mask": (
        lambda p: p.heads.entropy(torch.full((3, 2, 2), 0.5), p.masks.causal(2)),
        ValueError,
        "mask forbids a key that has weight 0.5; pass the mask that made these weights "
        "(True = may attend)",
    ),
    "entropy with a mask of other rank": (
        lambda p: p.heads.entropy(torch.full((3, 5, 2, 2), 0.5), bools(5, 2, 2)),
        ValueError,
        "mask of shape (5, 2, 2) has 3 axes, but weights has 4; pass a 2-D mask "
        "(n_q, n_k), or one with an axis (perhaps of size 1) for each axis of weights",
    ),
    "ablation of one number": (
        lambda p: p.heads.ablate(3, 1),
        TypeError,
        "heads must be a list of head numbers, got 1; pass e.g. [0, 2]",
    ),
    "ablation of a fraction": (
        lambda p: p.heads.ablate(3, [0, 1.5]),
        TypeError,
        "heads contains 1.5; a head is named by its number, an int",
    ),
    "ablation of a gate": (
        lambda p: p.heads.ablate(3, [True, False, True]),
        TypeError,
        "heads contains True; a head is named by its number, an int",
    ),
    "ablation of a head too many": (
        lambda p: p.heads.ablate(3, [0, 3]),
        ValueError,
        "heads contains 3, but there are num_heads=3, counted from 0",
    ),
    "ablation from the end": (
        lambda p: p.heads.ablate(3, [-1]),
        ValueError,
        "heads contains -1, but there are num_heads=3, counted from 0",
    ),
    "ablation among a fraction of heads": (
        lambda p: p.heads.ablate(3.0, [0]),
        TypeError,
        "num_heads must be an int, got float (3.0)",
    ),
    # costs
    "cost of 512 in 12 heads": (
        lambda p: p.costs.parameters(512, 12),
        ValueError,
        "d_model=512 is not divisible by num_heads=12; pass d_k=…",
    ),
    "cost of 4 key heads for 6": (
        lambda p: p.costs.forward_flops(42, 6, 5, num_kv_heads=4),
        ValueError,
        "num_kv_heads=4 does not divide num_heads=6; each key head serves a group of "
        "query heads of equal size",
    ),
    "cost of a float": (
        lambda p: p.costs.parameters(21.0, 3),
        TypeError,
        "d_model must be an int, got 21.0",
    ),
    "cost of two biases": (
        lambda p: p.costs.parameters(21, 3, bias=2),
        TypeError,
        "bias must be True or False, got 2",
    ),
    "cost of no context": (
        lambda p: p.costs.parameters(21, 3, d_context=0),
        ValueError,
        "d_context=0 must be at least 1",
    ),
    "cost of negative length": (
        lambda p: p.costs.forward_flops(21, 3, -5),
        ValueError,
        "n_q=-5 must be at least 0",
    ),
    "scores of no head": (
        lambda p: p.costs.score_bytes(0, 5),
        ValueError,
        "num_heads=0 must be at least 1",
    ),
    "cache of negative layers": (
        lambda p: p.costs.kv_cache_bytes(5, num_kv_heads=3, d_k=7, num_layers=-1),
        ValueError,
        "num_layers=-1 must be at least 0",
    ),
    "cache of half a byte": (
        lambda p: p.costs.kv_cache_bytes(5, num_kv_heads=3, d_k=7, itemsize=0.5),
        TypeError,
        "itemsize must be an int, got 0.5",
    ),
}


@pytest.mark.parametrize(("wrong", "kind", "message"), ERRORS.values(), ids=ERRORS)
def test_message(plain, wrong, kind, message):
    with pytest.raises(kind) as caught:
        wrong(plain)
    assert str(caught.value) == message


@pytest.mark.parametrize("method", ["forward", "trace"])
def test_forward_and_trace_check_alike(plain, method):
    module = build(plain)
    with pytest.raises(ValueError, match="is ambiguous"):
        getattr(module, method)(torch.randn(3, 5, 21), mask=bools(3, 5, 5))


def test_every_raise_is_reached(plain):
    package = Path(mha_teach.__file__).parent
    written = {
        (name, node.lineno)
        for name in CORE
        for node in ast.walk(ast.parse((package / f"{name}.py").read_text("utf-8")))
        if isinstance(node, ast.Raise)
    }
    reached = set()
    for wrong, kind, _ in ERRORS.values():
        with pytest.raises(kind) as caught:
            wrong(plain)
        last = traceback.extract_tb(caught.value.__traceback__)[-1]
        reached.add((Path(last.filename).stem, last.lineno))
    assert reached == written
