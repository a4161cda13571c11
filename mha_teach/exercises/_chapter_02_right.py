"""Other right answers to the exercises of chapter 02: the checks must accept them."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from mha_teach import heads, scaled_dot_product_attention


def scores_by_variances(d_model, d_k, var_q, var_k):
    variance_of_a_product = var_q * var_k
    variance = sum(variance_of_a_product for _ in range(d_k))
    return {
        "limit": 1.0,
        "left": math.sqrt(variance / d_k),
        "divisor": math.sqrt(d_k),
        "quadrupled": math.sqrt(4),
        "spread": round(math.sqrt(variance)),
    }


def scores_as_tensors(d_model, d_k, var_q, var_k):
    answer = scores_by_variances(d_model, d_k, var_q, var_k)
    return {name: torch.tensor(value) for name, value in answer.items()}


def scores_in_numpy(d_model, d_k, var_q, var_k):
    return {
        "spread": np.sqrt(d_k * var_q * var_k),
        "quadrupled": np.float32(2),
        "divisor": np.sqrt(d_k),
        "left": np.sqrt(var_q) * np.sqrt(var_k),
        "limit": np.int64(1),
    }


def attention_fused(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def attention_by_package(q, k, v):
    return scaled_dot_product_attention(q.double(), k.double(), v.double()).output


def attention_by_einsum(q, k, v):
    scores = torch.einsum("bqd,bkd->bqk", q * q.shape[-1] ** -0.5, k)
    return torch.einsum("bqk,bkv->bqv", scores.softmax(dim=-1), v)


def attention_in_numpy(q, k, v):
    q, k, v = (t.double().numpy() for t in (q, k, v))
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(k.shape[2])
    weights = np.exp(scores)
    return weights / weights.sum(axis=-1, keepdims=True) @ v


def attention_one_query_at_a_time(q, k, v):
    d_k = k.size(-1)
    k = k.transpose(-2, -1)
    rows = []
    for i in range(q.size(1)):
        scores = torch.bmm(q[:, i : i + 1], k) / math.sqrt(d_k)
        rows.append(torch.bmm(torch.softmax(scores, dim=2), v))
    return torch.cat(rows, dim=1)


def entropy_by_xlogy(weights):
    return -torch.special.xlogy(weights, weights).sum(-1).mean(-1)


def entropy_by_loops(weights):
    found = []
    for head in weights.tolist():
        rows = [sum(-w * math.log(w) for w in row if w > 0) for row in head]
        found.append(sum(rows) / len(rows))
    return torch.tensor(found)


def entropy_in_numpy(weights):
    w = weights.double().numpy()
    surprise = np.log(1 / np.where(w == 0, 1, w))
    return (w * surprise).sum(axis=2).mean(axis=1)


def entropy_by_distribution(weights):
    return torch.distributions.Categorical(probs=weights).entropy().mean(dim=1)


def entropy_by_package(weights):
    return heads.entropy(weights)


def entropy_by_nansum(weights):
    return torch.nansum(-weights * torch.log(weights), dim=-1).mean(dim=-1)


def start_by_formula(d_model, d_k):
    variance = (2 / d_model**0.5) ** 2 / 12 * d_model
    spread = math.sqrt(d_k * variance**2)
    return {
        "variance": variance,
        "spread": spread / math.sqrt(d_k),
        "divisor": spread,
        "doubled": 2 * 2,
        "why": "Else the start depends on the width of a head, and a wide one hardly "
        "gets a gradient for most of its queries.",
    }


def start_as_tensors(d_model, d_k):
    x = torch.randn(2000, d_model)
    layers = [nn.Linear(d_model, d_k) for _ in range(2)]
    q, k = (layer(x) for layer in layers)
    return {
        "variance": q.var(),
        "spread": (q @ k.T / d_k**0.5).std(),
        "divisor": (q @ k.T).std(),
        "doubled": (2 * q @ (2 * k).T).std() / (q @ k.T).std(),
        "why": "除以 √d_k 之后，初始分数的大小与头的宽度无关，其余的由训练来决定。",
    }


def start_in_numpy(d_model, d_k):
    rng = np.random.default_rng(0)
    bound = d_model**-0.5
    x = rng.normal(size=(1500, d_model))
    w_q, w_k = rng.uniform(-bound, bound, size=(2, d_model, d_k))
    q, k = x @ w_q, x @ w_k
    return {
        "variance": q.var(),
        "spread": (q @ k.T).std() / np.sqrt(d_k),
        "divisor": (q @ k.T).std(),
        "doubled": 4.0,
        "why": "Training starts alike at every width; how sharp a head gets is learnt.",
    }


def start_without_bias(d_model, d_k):
    x = torch.randn(500, d_model, dtype=torch.float64)
    q_proj, k_proj = (nn.Linear(d_model, d_k, bias=False).double() for _ in range(2))
    with torch.no_grad():
        q, k = q_proj(x), k_proj(x)
    spread = torch.einsum("id,jd->ij", q, k).std().item()
    return {
        "variance": q.square().mean().item(),
        "spread": spread / d_k**0.5,
        "divisor": spread,
        "doubled": 4,
        "why": "It takes the width out of the temperature that training starts from.",
    }
