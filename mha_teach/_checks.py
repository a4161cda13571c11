"""What the public functions of ``attention.py`` and ``heads.py`` demand.

Each check raises before anything is computed, and its message names the argument, its
value and the way out.
"""

from collections.abc import Iterable
from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import type_before_parametrizations

from mha_teach.cache import KVCache
from mha_teach.costs import require_at_least, require_flag
from mha_teach.masks import (
    Causal,
    Mask,
    as_tensor,
    require_bool,
    require_floating,
    require_size,
    require_tensor,
    require_values,
)

if TYPE_CHECKING:
    from mha_teach.attention import AttentionTrace, MultiHeadAttention


class Inputs(NamedTuple):
    """Checked arguments of a module call, with a batch axis in front."""

    query: Tensor
    key: Tensor
    value: Tensor


def head_sizes(
    d_model: int,
    num_heads: int,
    d_k: int | None,
    d_v: int | None,
    num_kv_heads: int | None,
    d_context: int | None,
    bias: bool,
    dropout: float,
) -> tuple[int, int, int, int]:
    """Fill in the defaults d_k, d_v, num_kv_heads, d_context."""
    require_at_least(1, d_model=d_model, num_heads=num_heads)
    optional = {
        "d_k": d_k,
        "d_v": d_v,
        "num_kv_heads": num_kv_heads,
        "d_context": d_context,
    }
    given = {name: size for name, size in optional.items() if size is not None}
    require_at_least(1, **given)
    require_flag("bias", bias)
    if not _is_number(dropout):
        raise TypeError(f"dropout must be a number, got {dropout!r}")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout={dropout} is out of range; use 0 <= dropout < 1")
    if d_k is None and d_model % num_heads:
        raise ValueError(
            f"d_model={d_model} is not divisible by num_heads={num_heads}; "
            f"pass d_k=… or use one of {_nearest_divisors(d_model, num_heads)} heads"
        )
    num_kv_heads = num_kv_heads or num_heads
    if num_heads % num_kv_heads:
        raise ValueError(
            f"num_kv_heads={num_kv_heads} does not divide num_heads={num_heads}; "
            f"use one of {_divisors(num_heads)}"
        )
    d_k = d_k or d_model // num_heads
    return d_k, d_v or d_k, num_kv_heads, d_context or d_model


def _divisors(n: int) -> list[int]:
    return [i for i in range(1, n + 1) if n % i == 0]


def _nearest_divisors(n: int, target: int) -> list[int]:
    nearest = sorted(_divisors(n), key=lambda i: (abs(i - target), i))
    return sorted(nearest[:4])


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _require_scale(scale: float | None) -> None:
    if scale is None or isinstance(scale, torch.SymFloat):
        return
    if not _is_number(scale):
        raise TypeError(
            f"scale must be one number, got {type(scale).__name__}; pass a float, or "
            "None for 1/√d_k"
        )
    if not isfinite(scale):
        raise ValueError(f"scale={scale} makes every score nan or infinite")


def attention_arguments(
    q: Tensor, k: Tensor, v: Tensor, mask: Mask | None, scale: float | None
) -> None:
    """Check the arguments of ``scaled_dot_product_attention``."""
    _require_scale(scale)
    for name, tensor in {"q": q, "k": k, "v": v}.items():
        _require_vectors(name, tensor)
        if tensor.dim() < 2:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; it needs at least two axes, "
                "(…, tokens, width)"
            )
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(
            f"q, k and v are {q.dtype}, {k.dtype} and {v.dtype}; convert them to one "
            "dtype"
        )
    _require_one_device(q=q, k=k, v=v, mask=mask)
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"q has d_k={q.shape[-1]} but k has d_k={k.shape[-1]}; a dot product "
            "needs equal widths, so project both to one d_k"
        )
    if q.shape[-1] == 0:
        raise ValueError("q and k have d_k=0; a dot product needs at least one term")
    _require_same_length("k", k, "v", v)
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        raise ValueError(
            f"q, k and v differ in their leading axes: {tuple(q.shape[:-2])}, "
            f"{tuple(k.shape[:-2])}, {tuple(v.shape[:-2])}; expand them to one shape"
        )
    if mask is not None:
        _require_free_mask(mask, "q", (*q.shape[:-1], k.shape[-2]))


def weights_arguments(weights: Tensor, mask: Mask | None) -> None:
    """Check weights, and that the mask beside them is the one that made them."""
    require_floating("weights", weights, way_out="pass the weights of a trace")
    if weights.dim() < 2:
        raise ValueError(
            f"weights has shape {tuple(weights.shape)}; it needs at least two axes, "
            "(…, query, key)"
        )
    _require_one_device(weights=weights, mask=mask)
    require_values("weights", weights)
    _require_shares(weights.detach())
    if mask is None:
        return
    _require_free_mask(mask, "weights", tuple(weights.shape))
    allowed = as_tensor(mask, weights.device)
    forbidden = ~allowed & allowed.any(dim=-1, keepdim=True)
    leaked = weights.detach().where(forbidden, 0.0)
    if leaked.any():
        raise ValueError(
            f"mask forbids a key that has weight {leaked.max().item():.3g}; pass the "
            "mask that made these weights (True = may attend)"
        )


def split_arguments(x: Tensor, num_heads: int) -> None:
    """Check the arguments of ``split_heads``."""
    require_tensor("x", x)
    require_size("num_heads", num_heads)
    if x.dim() < 2 or num_heads == 0 or x.shape[-1] % num_heads:
        raise ValueError(
            f"x of shape {tuple(x.shape)} does not split into num_heads={num_heads}; "
            "use (…, n, width) with a width that num_heads divides"
        )


def merge_arguments(x: Tensor) -> None:
    """Check the argument of ``merge_heads``."""
    require_tensor("x", x)
    if x.dim() < 3:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; it needs at least three axes, "
            "(…, head, n, width)"
        )


def own_trace(module: "MultiHeadAttention", trace: "AttentionTrace") -> None:
    """Check that a trace may come from a module: its heads, of its width."""
    # A compiled module is of another class and has all the same attributes.
    if not hasattr(module, "d_v"):
        raise TypeError(
            f"module must be a MultiHeadAttention, got {type(module).__name__}; pass "
            "the module that made the trace"
        )
    if not hasattr(trace, "head_outputs"):
        raise TypeError(
            f"trace must be an AttentionTrace, got {type(trace).__name__}; make one "
            "with module.trace(…)"
        )
    head_outputs = trace.head_outputs
    num_heads, d_v = head_outputs.shape[-3], head_outputs.shape[-1]
    if (num_heads, d_v) != (module.num_heads, module.d_v):
        raise ValueError(
            f"the trace has num_heads={num_heads} and d_v={d_v}, the module "
            f"num_heads={module.num_heads} and d_v={module.d_v}; pass the module that "
            "made the trace"
        )


def head_numbers(num_heads: int, heads: Iterable[int]) -> list[int]:
    """Check the heads that are named; return them as a list of ints."""
    require_size("num_heads", num_heads)
    if not isinstance(heads, Iterable) or isinstance(heads, str):
        raise TypeError(
            f"heads must be a list of head numbers, got {heads!r}; pass e.g. [0, 2]"
        )
    named = list(heads)
    for head in named:
        if isinstance(head, bool) or not isinstance(head, int):
            raise TypeError(
                f"heads contains {head!r}; a head is named by its number, an int"
            )
        if not 0 <= head < num_heads:
            raise ValueError(
                f"heads contains {head}, but there are num_heads={num_heads}, counted "
                "from 0"
            )
    return named


def _require_shares(weights: Tensor) -> None:
    """Raise unless each row is zero, or not negative with a sum of one.

    The sum may be off by what a bfloat16 softmax is off by.
    """
    sums = weights.float().sum(dim=-1)
    is_share = ((sums - 1).abs() < 0.01) | (sums == 0)
    is_share = is_share & (weights >= 0).all(dim=-1)
    if not is_share.all():
        row = weights[~is_share][0]
        raise ValueError(
            f"weights has a row with sum {row.sum().item():.3g} and smallest entry "
            f"{row.min().item():.3g}; pass weights after softmax and before dropout"
        )


def module_arguments(
    module: "MultiHeadAttention",
    query: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    mask: Mask | None,
    head_gate: Tensor | None,
) -> Inputs:
    """Check the arguments of a module call, fill in defaults, add a batch axis."""
    if key is None:
        if value is not None:
            raise ValueError(
                "value was given without key; pass both, or key alone to use it as both"
            )
        if module.d_context != module.d_model:
            raise ValueError(
                f"key is needed: this module has d_context={module.d_context} and "
                f"d_model={module.d_model}, so the query cannot be its own context"
            )
        key = query
    value = key if value is None else value
    _require_tokens("query", query, module, "d_model")
    _require_tokens("key", key, module, "d_context")
    _require_tokens("value", value, module, "d_context")
    _require_one_device(
        query=query, key=key, value=value, mask=mask, head_gate=head_gate
    )
    if not query.dim() == key.dim() == value.dim():
        raise ValueError(
            f"query, key and value have {query.dim()}, {key.dim()} and {value.dim()} "
            "axes; give all of them a batch axis, or none"
        )
    _require_same_length("key", key, "value", value)
    batched = query.dim() == 3
    if not batched:
        query, key, value = query[None], key[None], value[None]
    if not query.shape[0] == key.shape[0] == value.shape[0]:
        raise ValueError(
            f"query, key and value have batch sizes {query.shape[0]}, {key.shape[0]}, "
            f"{value.shape[0]}; they must be equal"
        )
    batch, n_q, n_k = query.shape[0], query.shape[1], key.shape[1]
    module_mask(mask, (batch, module.num_heads, n_q, n_k))
    if head_gate is not None:
        _require_gate(head_gate, module.num_heads, batch if batched else None)
    return Inputs(query, key, value)


def module_mask(mask: Mask | None, scores_shape: tuple[int, int, int, int]) -> None:
    """Check a mask against scores of shape (batch, num_heads, n_q, n_k)."""
    if mask is None:
        return
    require_bool(mask)
    if isinstance(mask, Causal):
        _require_causal(mask, *scores_shape[-2:])
    elif mask.dim() == 2:
        _require_2d(mask, *scores_shape[-2:])
    elif mask.dim() == 3:
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} is ambiguous: its first axis could be "
            "batch or head; pass mask[:, None] for (batch, n_q, n_k) or mask[None] for "
            "(head, n_q, n_k)"
        )
    elif mask.dim() == 4:
        _require_broadcastable(mask, scores_shape)
    else:
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} has {mask.dim()} axes; use 2, "
            "(n_q, n_k), or 4, broadcastable to (batch, head, n_q, n_k)"
        )


def decode_arguments(
    module: "MultiHeadAttention", x_new: Tensor, cache: KVCache, mask: Mask | None
) -> Tensor:
    """Check the arguments of ``decode``; return ``x_new`` with a batch axis."""
    if module.d_context != module.d_model:
        raise ValueError(
            f"decode attends to its own tokens, but this module has d_context="
            f"{module.d_context} and d_model={module.d_model}; use forward instead"
        )
    _require_tokens("x_new", x_new, module, "d_model")
    _require_one_device(x_new=x_new, mask=mask)
    if not isinstance(cache, KVCache):
        raise TypeError(
            f"cache must be a KVCache, got {type(cache).__name__}; make one with "
            "module.new_cache(batch_size, max_length)"
        )
    x_new = x_new[None] if x_new.dim() == 2 else x_new
    batch, n_new = x_new.shape[:2]
    expected = (batch, module.num_kv_heads, module.d_k, module.d_v)
    found = (*cache.k.shape[:2], cache.k.shape[3], cache.v.shape[3])
    if found != expected:
        raise ValueError(
            f"cache has (batch, num_kv_heads, d_k, d_v)={found}, but x_new and this "
            f"module need {expected}; make it with module.new_cache({batch}, …)"
        )
    dtype = module.k_proj.weight.dtype
    if cache.k.dtype != dtype:
        raise ValueError(
            f"cache holds {cache.k.dtype}, but this module holds {dtype}; "
            "call new_cache after converting the module"
        )
    if cache.k.device != x_new.device:
        raise ValueError(
            f"cache is on {cache.k.device}, but x_new is on {x_new.device}; "
            "call new_cache after moving the module"
        )
    cache.require_room(n_new)
    module_mask(mask, (batch, module.num_heads, n_new, cache.length + n_new))
    return x_new


def torch_module(module: nn.MultiheadAttention) -> None:
    """Check that an ``nn.MultiheadAttention`` has a counterpart here."""
    if not isinstance(module, nn.MultiheadAttention):
        raise TypeError(
            f"from_torch needs an nn.MultiheadAttention, got {type(module).__name__}"
        )
    kind = type_before_parametrizations(module)
    if kind is not nn.MultiheadAttention:
        raise TypeError(
            f"{kind.__module__}.{kind.__qualname__} is a subclass of "
            "nn.MultiheadAttention and may keep its weights elsewhere; load them into "
            "an nn.MultiheadAttention first"
        )
    if module.kdim != module.vdim:
        raise ValueError(
            f"kdim={module.kdim} and vdim={module.vdim} differ; here key and value "
            "share one width, d_context"
        )
    if module.bias_k is not None:
        raise ValueError("add_bias_kv=True has no counterpart here; build without it")
    if module.add_zero_attn:
        raise ValueError("add_zero_attn=True has no counterpart here; build without it")


def has_torch_counterpart(module: "MultiHeadAttention") -> None:
    """Check that ``nn.MultiheadAttention`` can hold these weights."""
    if module.num_kv_heads != module.num_heads:
        raise ValueError(
            f"num_kv_heads={module.num_kv_heads} is less than num_heads="
            f"{module.num_heads}; nn.MultiheadAttention needs them equal"
        )
    if module.d_v != module.d_k:
        raise ValueError(
            f"d_v={module.d_v} differs from d_k={module.d_k}; "
            "nn.MultiheadAttention needs them equal"
        )
    if module.num_heads * module.d_k != module.d_model:
        raise ValueError(
            f"num_heads * d_k = {module.num_heads} * {module.d_k} differs from "
            f"d_model={module.d_model}; nn.MultiheadAttention needs them equal"
        )


def _require_vectors(name: str, tensor: Tensor) -> None:
    is_bool = isinstance(tensor, Tensor) and tensor.dtype == torch.bool
    if isinstance(tensor, Causal) or is_bool:
        raise TypeError(f"{name} must hold vectors, got a mask; pass it as mask=…")
    require_floating(name, tensor, "embed token ids, or convert with .float()")


def _require_one_device(**arguments: Tensor | Mask | None) -> None:
    (first, reference), *others = arguments.items()
    for name, other in others:
        if isinstance(other, Tensor) and other.device != reference.device:
            raise ValueError(
                f"{name} is on {other.device}, but {first} is on {reference.device}; "
                f"pass {name}.to({first}.device)"
            )


def _require_tokens(
    name: str, tensor: Tensor, module: "MultiHeadAttention", width_name: str
) -> None:
    _require_vectors(name, tensor)
    _require_dtype_of(module, name, tensor)
    width = getattr(module, width_name)
    if tensor.dim() not in (2, 3):
        raise ValueError(
            f"{name} has shape {tuple(tensor.shape)}; use (n, {width_name}) or "
            f"(batch, n, {width_name})"
        )
    if tensor.shape[-1] != width:
        raise ValueError(
            f"{name} has width {tensor.shape[-1]}, but this module was built with "
            f"{width_name}={width}"
        )


def _require_dtype_of(module: "MultiHeadAttention", name: str, tensor: Tensor) -> None:
    weight = module.q_proj.weight
    # Quantised projections convert their input: no float tensor holds their weights.
    if not isinstance(weight, Tensor) or not weight.is_floating_point():
        return
    if tensor.dtype != weight.dtype and not _under_autocast(tensor.device.type):
        raise TypeError(
            f"{name} is {tensor.dtype}, but this module holds {weight.dtype}; pass "
            f"{name}.to({weight.dtype}) or convert the module"
        )


def _under_autocast(device: str) -> bool:
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def _require_same_length(
    key_name: str, key: Tensor, value_name: str, value: Tensor
) -> None:
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"{key_name} has {key.shape[-2]} tokens and {value_name} has "
            f"{value.shape[-2]}; every key needs its value"
        )


def _require_free_mask(mask: Mask, beside: str, scores_shape: tuple[int, ...]) -> None:
    """Check a mask that is 2-D or has an axis for each axis of the tensor beside it."""
    require_bool(mask)
    n_q, n_k = scores_shape[-2:]
    if isinstance(mask, Causal):
        _require_causal(mask, n_q, n_k)
    elif mask.dim() == 2:
        _require_2d(mask, n_q, n_k)
    elif mask.dim() != len(scores_shape):
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} has {mask.dim()} axes, but {beside} "
            f"has {len(scores_shape)}; pass a 2-D mask (n_q, n_k), or one with an axis "
            f"(perhaps of size 1) for each axis of {beside}"
        )
    else:
        _require_broadcastable(mask, scores_shape)


def _require_causal(mask: Causal, n_q: int, n_k: int) -> None:
    if (mask.n_q, mask.n_k) != (n_q, n_k):
        raise ValueError(
            f"mask is causal({mask.n_q}, {mask.n_k}), but there are n_q={n_q} queries "
            f"and n_k={n_k} keys; pass masks.causal({n_q}, {n_k})"
        )


def _require_2d(mask: Tensor, n_q: int, n_k: int) -> None:
    if mask.shape != (n_q, n_k):
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} should be (n_q, n_k)=({n_q}, {n_k}); "
            "for one row per sequence use masks.padding(lengths, n_k)"
        )


def _require_broadcastable(mask: Tensor, scores_shape: tuple[int, ...]) -> None:
    pairs = zip(mask.shape, scores_shape, strict=True)
    if any(size not in (1, full) for size, full in pairs):
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} does not broadcast to the scores "
            f"{tuple(scores_shape)}; each axis must agree or be 1"
        )


def _require_gate(gate: Tensor, num_heads: int, batch: int | None) -> None:
    require_floating("head_gate", gate, way_out="convert with .float()")
    shapes = [(num_heads,)] if batch is None else [(num_heads,), (batch, num_heads)]
    if tuple(gate.shape) not in shapes:
        allowed = " or ".join(str(shape) for shape in shapes)
        raise ValueError(
            f"head_gate has shape {tuple(gate.shape)}; use {allowed}, one number a head"
        )
