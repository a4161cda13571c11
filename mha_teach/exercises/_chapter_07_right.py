"""Other right answers to the exercises of chapter 07: the checks must accept them."""

import torch
from torch import nn
from torch.nn import functional as F

from mha_teach import MultiHeadAttention, scaled_dot_product_attention


def shapes_by_running(batch, n, d_model, h, d_k):
    mha = MultiHeadAttention(d_model, h, d_k=d_k, bias=False)
    twice = MultiHeadAttention(d_model, 2 * h, d_k=d_k // 2, bias=False)
    trace = mha.trace(torch.zeros(batch, n, d_model))
    count, count_twice = (sum(p.numel() for p in m.parameters()) for m in (mha, twice))
    return {
        "q": trace.q.shape,
        "weights": trace.weights.shape,
        "output": trace.output.shape,
        "parameters": count,
        "more": count_twice - count,
    }


def shapes_as_lists(batch, n, d_model, h, d_k):
    width = h * d_k
    return {
        "more": 0.0,
        "parameters": float(3 * d_model * width + width * d_model),
        "output": [batch, n, d_model],
        "weights": [batch, h, n, n],
        "q": [batch, h, n, d_k],
    }


def shapes_as_tensors(batch, n, d_model, h, d_k):
    answer = shapes_by_running(batch, n, d_model, h, d_k)
    return {name: torch.tensor(value) for name, value in answer.items()}


def rebuilt_by_torch(x, in_proj_weight, in_proj_bias, out_weight, out_bias, h):
    module = nn.MultiheadAttention(x.shape[-1], h, batch_first=True)
    module.load_state_dict(
        {
            "in_proj_weight": in_proj_weight,
            "in_proj_bias": in_proj_bias,
            "out_proj.weight": out_weight,
            "out_proj.bias": out_bias,
        }
    )
    return module(x, x, x)[0]


def rebuilt_by_heads(x, in_proj_weight, in_proj_bias, out_weight, out_bias, h):
    w = in_proj_weight.double().T.unflatten(-1, (3, h, -1))
    b = in_proj_bias.double().unflatten(-1, (3, h, -1))
    heads = []
    for i in range(h):
        q, k, v = (x.double() @ w[:, j, i] + b[j, i] for j in range(3))
        heads.append(scaled_dot_product_attention(q, k, v).output)
    return torch.cat(heads, dim=-1) @ out_weight.double().T + out_bias


def rebuilt_fused(x, in_proj_weight, in_proj_bias, out_weight, out_bias, h):
    projected = F.linear(x, in_proj_weight, in_proj_bias)
    q, k, v = projected.unflatten(-1, (3, h, -1)).permute(2, 0, 3, 1, 4)
    head_outputs = F.scaled_dot_product_attention(q, k, v)
    return F.linear(head_outputs.transpose(1, 2).flatten(2), out_weight, out_bias)


def mha_by_loop(x, w_q, w_k, w_v, w_o, h):
    output = 0
    parts = zip(
        w_q.chunk(h, 1), w_k.chunk(h, 1), w_v.chunk(h, 1), w_o.chunk(h), strict=True
    )
    for w_q_i, w_k_i, w_v_i, w_o_i in parts:
        q, k, v = x @ w_q_i, x @ w_k_i, x @ w_v_i
        weights = torch.softmax(q @ k.mT / w_q_i.shape[1] ** 0.5, dim=-1)
        output = output + weights @ v @ w_o_i
    return output


def mha_by_einsum(x, w_q, w_k, w_v, w_o, h):
    q, k, v = (
        torch.einsum("bnd,dhk->bhnk", x, w.unflatten(1, (h, -1)))
        for w in (w_q, w_k, w_v)
    )
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5
    head_outputs = torch.einsum("bhqk,bhkd->bhqd", scores.softmax(-1), v)
    return torch.einsum("bhqd,hdm->bqm", head_outputs, w_o.unflatten(0, (h, -1)))


def mha_fused(x, w_q, w_k, w_v, w_o, h):
    batch, n, _ = x.shape
    q, k, v = ((x @ w).view(batch, n, h, -1).transpose(1, 2) for w in (w_q, w_k, w_v))
    output = F.scaled_dot_product_attention(q, k, v)
    return output.transpose(1, 2).reshape(batch, n, -1) @ w_o


def mha_by_module(x, w_q, w_k, w_v, w_o, h):
    d_k, d_v = w_q.shape[1] // h, w_v.shape[1] // h
    module = MultiHeadAttention(x.shape[-1], h, d_k=d_k, d_v=d_v, bias=False)
    weights = {"q_proj": w_q, "k_proj": w_k, "v_proj": w_v, "out_proj": w_o}
    module.load_state_dict({f"{name}.weight": w.T for name, w in weights.items()})
    return module(x)


def mha_in_numpy(x, w_q, w_k, w_v, w_o, h):
    tensors = (t.double() for t in (x, w_q, w_k, w_v, w_o))
    return mha_by_loop(*tensors, h).numpy()


def ranks_by_counting(n, d_model, h, d_k):
    why = "q is n by d_k, so q @ k.T has rank d_k at most; exp can raise it."
    return {"scores": d_k, "weights": n, "half": d_k // 2, "why": why}


def ranks_as_tensors(n, d_model, h, d_k):
    answer = ranks_by_counting(n, d_model, h, d_k)
    return {
        name: value if name == "why" else torch.tensor(value)
        for name, value in answer.items()
    }


def ranks_by_singular_values(n, d_model, h, d_k):
    def count(matrix):
        values = torch.linalg.svdvals(matrix)
        return int((values > 1e-10 * values[0]).sum())

    q, k = torch.randn(2, n, d_k, dtype=torch.float64)
    scores = q @ k.T / d_k**0.5
    half = q[:, : d_k // 2] @ k[:, : d_k // 2].T
    return {
        "scores": count(scores),
        "weights": count(scores.softmax(-1)),
        "half": count(half),
        "why": "每个分数是 d_k 个乘积之和，所以分数矩阵的秩不超过 d_k。",
    }
