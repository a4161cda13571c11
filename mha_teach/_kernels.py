"""The fast path: which of PyTorch's fused kernels computes softmax(QKᵀ/√d_k)V.

Nothing here changes a number. ``attention.py`` holds the mathematics; this module
decides how to have it computed without storing the scores.
"""

from collections.abc import Callable
from functools import wraps

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from mha_teach.masks import Causal, Mask


def fused_attention(
    q: Float[Tensor, "batch head query d_k"],
    k: Float[Tensor, "batch kv_head key d_k"],
    v: Float[Tensor, "batch kv_head key d_v"],
    mask: Mask | None,
    dropout: float,
) -> Float[Tensor, "batch head query d_v"]:
    """Attend without storing scores; key heads are shared by groups of query heads."""
    is_causal = False
    if isinstance(mask, Causal):
        # The kernel aligns its own triangle top-left: ours only where n_q = n_k.
        if mask.n_q == mask.n_k:
            mask, is_causal = None, True
        else:
            mask = None if mask.n_q == 1 else mask.tensor(q.device)
    return F.scaled_dot_product_attention(
        q,
        k,
        v,
        attn_mask=mask,
        dropout_p=dropout,
        is_causal=is_causal,
        enable_gqa=k.shape[1] != q.shape[1],
    )


def in_float32(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Hand half-precision tensors to the function as float32, autocast or not.

    A product of two float16 vectors overflows at 65 504, and a bfloat16 softmax sums
    to one only within 0.4 %. The fused kernels add up in float32; so does the
    readable path.
    """
    half = (torch.float16, torch.bfloat16)

    @wraps(function)
    def widened(q: Tensor, k: Tensor, *args, **kwargs) -> Tensor:
        q, k = (t.float() if t.dtype in half else t for t in (q, k))
        if not torch.amp.is_autocast_available(q.device.type):
            return function(q, k, *args, **kwargs)
        with torch.autocast(q.device.type, enabled=False):
            return function(q, k, *args, **kwargs)

    return widened
