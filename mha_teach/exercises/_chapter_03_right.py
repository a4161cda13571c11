"""Other right answers to the exercises of chapter 03: the checks must accept them."""

import numpy as np
import torch
from torch.nn import functional as F

from mha_teach import MultiHeadAttention, scaled_dot_product_attention


def shapes_by_running(batch, n_q, n_k, d_model, d_context, d_k, d_v):
    x, context = torch.randn(batch, n_q, d_model), torch.randn(batch, n_k, d_context)
    module = MultiHeadAttention(
        d_model, 1, d_k=d_k, d_v=d_v, d_context=d_context, bias=False
    )
    trace = module.trace(x, context)
    return {
        "w_k": module.k_proj.weight.T.shape,
        "v": trace.v[:, 0].shape,
        "weights": trace.weights[:, 0].shape,
        "output": trace.head_outputs[:, 0].shape,
        "total": trace.weights.sum(),
    }


def shapes_as_lists(batch, n_q, n_k, d_model, d_context, d_k, d_v):
    return {
        "total": float(n_q * batch),
        "output": [batch, n_q, d_v],
        "weights": [batch, n_q, n_k],
        "v": [batch, n_k, d_v],
        "w_k": [d_context, d_k],
    }


def shapes_as_tensors(batch, n_q, n_k, d_model, d_context, d_k, d_v):
    answer = shapes_as_lists(batch, n_q, n_k, d_model, d_context, d_k, d_v)
    return {name: torch.tensor(value) for name, value in answer.items()}


def cross_fused(x, context, w_q, w_k, w_v):
    return F.scaled_dot_product_attention(x @ w_q, context @ w_k, context @ w_v)


def cross_by_queries(x, context, w_q, w_k, w_v):
    k, v = context @ w_k, context @ w_v
    answers = []
    for token in x.unbind(1):
        scores = torch.einsum("bd,bkd->bk", token @ w_q, k) / w_q.shape[1] ** 0.5
        answers.append(torch.einsum("bk,bkd->bd", torch.softmax(scores, -1), v))
    return torch.stack(answers, dim=1)


def cross_over_columns(x, context, w_q, w_k, w_v):
    """Keep a row for each key, and let the columns sum to one."""
    scores = (context @ w_k) @ (x @ w_q).transpose(-2, -1)
    weights = torch.softmax(scores / w_k.shape[-1] ** 0.5, dim=-2)
    return weights.transpose(-2, -1) @ (context @ w_v)


def cross_by_module(x, context, w_q, w_k, w_v):
    d_k, d_v = w_q.shape[1], w_v.shape[1]
    module = MultiHeadAttention(x.shape[-1], 1, d_k=d_k, d_v=d_v, bias=False)
    weights = {"q_proj": w_q, "k_proj": w_k, "v_proj": w_v}
    weights = {f"{name}.weight": w.T for name, w in weights.items()}
    module.load_state_dict(weights, strict=False)
    return module.trace(x, context).head_outputs[:, 0]


def cross_in_numpy(x, context, w_q, w_k, w_v):
    x, context, w_q, w_k, w_v = (
        t.double().numpy() for t in (x, context, w_q, w_k, w_v)
    )
    scores = (x @ w_q) @ np.swapaxes(context @ w_k, 1, 2) / np.sqrt(w_q.shape[1])
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return shares @ (context @ w_v) / shares.sum(axis=-1, keepdims=True)


def attention_by_einsum(q, k, v):
    scores = torch.einsum("...qd,...kd->...qk", q, k) * q.shape[-1] ** -0.5
    weights = torch.softmax(scores, dim=-1)
    return torch.einsum("...qk,...kd->...qd", weights, v), weights


def attention_by_loop(q, k, v):
    if q.dim() > 2:
        pairs = [attention_by_loop(*each) for each in zip(q, k, v, strict=True)]
        return [torch.stack(tensors) for tensors in zip(*pairs, strict=True)]
    weights = torch.stack([((k @ query) / len(query) ** 0.5).softmax(0) for query in q])
    return [torch.stack([(row[:, None] * v).sum(0) for row in weights]), weights]


def attention_fused(q, k, v):
    everyone = torch.eye(k.shape[-2]).expand(*k.shape[:-1], -1)
    weights = F.scaled_dot_product_attention(q, k, everyone)
    return F.scaled_dot_product_attention(q, k, v), weights


def attention_by_package(q, k, v):
    return scaled_dot_product_attention(q, k, v)


def attention_in_numpy(q, k, v):
    q, k, v = (t.double().numpy() for t in (q, k, v))
    shares = np.exp(q @ np.swapaxes(k, -2, -1) / np.sqrt(q.shape[-1]))
    weights = shares / shares.sum(axis=-1, keepdims=True)
    return weights @ v, weights


def symmetries_by_heads(n, d_model, d_k):
    """Make the heads one by one, and take the mirrored part pair by pair."""
    x = torch.randn(n, d_model, dtype=torch.float64)

    def share(q, k):
        s = q @ k.T
        return ((s**2).sum() + (s * s.T).sum()) / (2 * (s**2).sum())

    shares = {"random": [], "turned": [], "opposite": [], "tied": []}
    for _ in range(100):
        q, k = x @ torch.randn(2, d_model, d_k, dtype=x.dtype)
        turned = torch.cat([-q[:, d_k // 2 :], q[:, : d_k // 2]], dim=1)
        keys = {"random": k, "turned": turned, "opposite": -q, "tied": q}
        for name in shares:
            shares[name].append(share(q, keys[name]))
    means = {name: torch.stack(each).mean() for name, each in shares.items()}
    return {"why": "One matrix makes asking and answering the same thing.", **means}


def symmetries_by_module(n, d_model, d_k):
    module = MultiHeadAttention(d_model, 300, d_k=d_k)
    x = torch.randn(n, d_model)

    def share(weight):
        if weight is not None:
            module.k_proj.weight.data = weight
        scores = module.trace(x).scores
        size = torch.linalg.matrix_norm
        return (size((scores + scores.mT) / 2) / size(scores)).square().mean().item()

    random, w_q = share(None), module.q_proj.weight.data
    left, right = w_q.unflatten(0, (300, d_k)).chunk(2, dim=1)
    return {
        "tied": share(w_q),
        "opposite": share(-w_q),
        "turned": share(torch.cat([right, -left], dim=1).flatten(0, 1)),
        "random": random,
        "why": "共用一个矩阵时，问与答没有区别：谁看谁，谁就被谁看，分数表对称。",
    }


def symmetries_by_thinking(n, d_model, d_k):
    why = "Nothing in two matrices drawn apart prefers s_ij = s_ji to s_ij = −s_ji."
    return {"tied": 1, "opposite": 1, "turned": 0, "random": 0.5, "why": why}
