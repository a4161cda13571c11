"""What the package is measured against: the same function, written in other ways."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class PackedSDPA(nn.Module):
    """One Linear for q, k and v, then the fused kernel."""

    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        self.num_heads = num_heads
        self.qkv_proj = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, causal=False):
        packed = self.qkv_proj(x).unflatten(-1, (3, self.num_heads, -1))
        q, k, v = packed.permute(2, 0, 3, 1, 4)
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return self.out_proj(heads.transpose(1, 2).flatten(2))


class FourLinearsSDPA(nn.Module):
    """A Linear each for q, k, v and the output, and the fused kernel."""

    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        self.num_heads = num_heads
        self.projs = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x, causal=False):
        *in_projs, out_proj = self.projs
        q, k, v = (
            proj(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for proj in in_projs
        )
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return out_proj(heads.transpose(1, 2).flatten(2))


class Textbook(nn.Module):
    """Three Linears and explicit weights, as most tutorials print it."""

    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(self, x):
        batch, n, d_model = x.shape
        shape = (batch, n, self.num_heads, self.d_k)
        q = self.w_q(x).view(shape).transpose(1, 2)
        k = self.w_k(x).view(shape).transpose(1, 2)
        v = self.w_v(x).view(shape).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        weights = torch.softmax(scores, dim=-1)
        heads = torch.matmul(weights, v)
        return self.w_o(heads.transpose(1, 2).contiguous().view(batch, n, d_model))


class TorchMHA(nn.Module):
    """``nn.MultiheadAttention``, with or without its weights."""

    def __init__(self, d_model: int, num_heads: int, *, need_weights: bool):
        super().__init__()
        self.need_weights = need_weights
        self.mha = nn.MultiheadAttention(d_model, num_heads, batch_first=True)

    def forward(self, x):
        return self.mha(
            x, x, x, need_weights=self.need_weights, average_attn_weights=False
        )[0]
