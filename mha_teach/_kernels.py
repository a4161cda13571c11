"""How attention is computed: through a fused kernel, and in which precision.

``attention.py`` holds the mathematics, and nothing here changes it.
``fused_attention`` has PyTorch compute softmax(QKᵀ/√d_k)V in one go; ``in_float32``
keeps the rounding errors of the readable path small.
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
    """Attend in one go; key heads are shared by groups of query heads.

    PyTorch chooses the kernel. The fused ones never store the scores, and have a first
    derivative only, in reverse mode. On a CPU, d_v ≠ d_k and active dropout fall back
    to plain matrix products, which do store them.
    """
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
        enable_gqa=bool(k.shape[1] != q.shape[1]),
    )


def in_float32(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Hand half-precision tensors to the function as float32, autocast or not.

    A product of two float16 vectors overflows at 65 504, and a bfloat16 softmax sums
    to one only within 0.4 %. The fused kernels add up in float32; so does the
    readable path.
    """
    half = (torch.float16, torch.bfloat16)

    @wraps(function)
    def widened(a: Tensor, b: Tensor, *args, **kwargs) -> Tensor:
        a, b = (t.float() if t.dtype in half else t for t in (a, b))
        if not torch.amp.is_autocast_available(a.device.type):
            return function(a, b, *args, **kwargs)
        with torch.autocast(a.device.type, enabled=False):
            return function(a, b, *args, **kwargs)

    return widened
