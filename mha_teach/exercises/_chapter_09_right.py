"""Other right answers to the exercises of chapter 09: the checks must accept them."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from mha_teach.models import EncoderLayer


def sizes_by_running(batch, n, d_model, h, d_mlp, j):
    layer = EncoderLayer(d_model, h, d_mlp)
    x, inside = torch.randn(1, n, d_model), []
    layer.mlp[0].register_forward_hook(lambda *args: inside.append(args[2].shape))

    def run(x, mask=None):
        return layer.finish(x, layer.attention(x, mask=mask))

    output = run(torch.zeros(batch, n, d_model))
    new = x.clone()
    new[:, j] += torch.randn(d_model)

    def moves(mask):
        change = (run(new, mask) - run(x, mask)).abs().amax(dim=-1)
        return int((change > 1e-5).sum())

    everyone = torch.ones(n, n, dtype=torch.bool)

    def count(*parts):
        return sum(p.numel() for part in parts for p in part.parameters())

    return {
        "output": output.shape,
        "inside": inside[0],
        "mlp": count(layer.mlp),
        "norms": count(layer.attention_norm, layer.mlp_norm),
        "free": moves(everyone),
        "causal": moves(everyone.tril()),
        "apart": moves(torch.eye(n, dtype=torch.bool)),
    }


def sizes_as_lists(batch, n, d_model, h, d_mlp, j):
    return {
        "apart": 1.0,
        "causal": float(len(range(j, n))),
        "free": float(n),
        "norms": 4 * d_model,
        "mlp": (d_model + 1) * d_mlp + (d_mlp + 1) * d_model,
        "inside": [batch, n, d_mlp],
        "output": [batch, n, d_model],
    }


def sizes_as_tensors(batch, n, d_model, h, d_mlp, j):
    answer = sizes_as_lists(batch, n, d_model, h, d_mlp, j)
    return {name: torch.tensor(value) for name, value in answer.items()}


def finish_by_layer(x, attended, w_in, b_in, w_out, b_out):
    layer = EncoderLayer(x.shape[-1], 1, len(b_in))
    layer.mlp.load_state_dict(
        {"0.weight": w_in.T, "0.bias": b_in, "2.weight": w_out.T, "2.bias": b_out}
    )
    return layer.finish(x, attended)


def _normed(t):
    centred = t - t.mean(-1, keepdims=True)
    return centred / (centred**2).mean(-1, keepdims=True) ** 0.5


def finish_by_hand(x, attended, w_in, b_in, w_out, b_out):
    stream = _normed(x.double() + attended)
    hidden = stream @ w_in.double() + b_in
    bent = hidden * (1 + torch.erf(hidden / 2**0.5)) / 2
    return _normed(stream + bent @ w_out.double() + b_out)


def finish_in_numpy(x, attended, w_in, b_in, w_out, b_out):
    x, attended, w_in, b_in, w_out, b_out = (
        t.double().numpy() for t in (x, attended, w_in, b_in, w_out, b_out)
    )
    stream = _normed(x + attended)
    hidden = stream @ w_in + b_in
    bent = hidden * (1 + np.vectorize(math.erf)(hidden / 2**0.5)) / 2
    return _normed(stream + bent @ w_out + b_out)


def block_by_hand(x, mask, w_q, w_k, w_v, w_o, w_in, w_out):
    x, w_q, w_k, w_v, w_o, w_in, w_out = (
        t.double() for t in (x, w_q, w_k, w_v, w_o, w_in, w_out)
    )
    scores = torch.einsum("bqd,bkd->bqk", x @ w_q, x @ w_k) / w_q.shape[1] ** 0.5
    weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    x = _normed(x + weights @ (x @ w_v @ w_o))
    return _normed(x + (x @ w_in).clamp(min=0) @ w_out)


def block_with_the_norm_of_the_chapter(x, mask, w_q, w_k, w_v, w_o, w_in, w_out):
    def norm(t):
        spread = t.std(-1, correction=0, keepdim=True)
        return (t - t.mean(-1, keepdim=True)) / (spread + 1e-5)

    attended = F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v, mask)
    x = norm(x + attended @ w_o)
    return norm(x + (x @ w_in).relu() @ w_out)


def block_fused(x, mask, w_q, w_k, w_v, w_o, w_in, w_out):
    norm = nn.LayerNorm(x.shape[-1])
    attended = F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v, attn_mask=mask)
    x = norm(x + attended @ w_o)
    return norm(x + F.relu(x @ w_in) @ w_out)


def block_in_numpy(x, mask, w_q, w_k, w_v, w_o, w_in, w_out):
    x, w_q, w_k, w_v, w_o, w_in, w_out = (
        t.double().numpy() for t in (x, w_q, w_k, w_v, w_o, w_in, w_out)
    )
    scores = (x @ w_q) @ np.swapaxes(x @ w_k, -1, -2) / w_q.shape[1] ** 0.5
    weights = np.where(mask.numpy(), np.exp(scores), 0)
    weights /= weights.sum(axis=-1, keepdims=True)
    y = _normed(x + weights @ (x @ w_v) @ w_o)
    return _normed(y + np.maximum(y @ w_in, 0) @ w_out)


def stacks_by_counting(n, d_model, h, depth):
    why = "注意力是平均；没有残差，平均再平均，所有词元都变得一样。"
    numbers = {"once": n - 1, "alone": 0, "added": n - 1, "words": 0, "places": n}
    return numbers | {"why": why * 2}


def stacks_fused(n, d_model, h, depth):
    """Use PyTorch's own module, without biases, in float64."""
    layers = [
        nn.MultiheadAttention(d_model, h, bias=False).double() for _ in range(depth)
    ]
    x, places = torch.randn(2, n, d_model, dtype=torch.float64)
    order = torch.arange(n - 1, -1, -1)

    def through(x, layers, add):
        for layer in layers:
            attended, _ = layer(x, x, x)
            x = _normed(x + attended if add else attended)
        return x

    def rows(difference):
        return (difference.abs() > 1e-3).any(dim=1).sum().item()

    once, alone = through(x, layers[:1], add=False), through(x, layers, add=False)
    added = through(x, layers, add=True)
    placed = through(x + places, layers, add=True)
    return {
        "once": rows(once - once[0]),
        "alone": rows(alone - alone[0]),
        "added": rows(added - added[0]),
        "words": rows(through(x[order], layers, add=True) - added[order]),
        "places": rows(through(x[order] + places, layers, add=True) - placed[order]),
        "why": "Means of means are all alike, and a mean has no order.",
    }


def stacks_as_tensors(n, d_model, h, depth):
    answer = stacks_by_counting(n, d_model, h, depth)
    return {
        name: value if name == "why" else torch.tensor(value)
        for name, value in answer.items()
    }
