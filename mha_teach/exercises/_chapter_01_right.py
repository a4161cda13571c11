"""Other right answers to the exercises of chapter 01: the checks must accept them."""

import math

import numpy as np
import torch
from torch.nn import functional as F

from mha_teach import scaled_dot_product_attention


def weigh_by_softmax(power_2, power_3, v_1, v_2, v_3):
    scores = torch.tensor([1.0, power_2, power_3], dtype=torch.float64).log()
    values = torch.tensor([v_1, v_2, v_3], dtype=torch.float64)

    def weights(scores):
        return scores.softmax(dim=0)

    halved = weights(scores / 0.5)
    return {
        "third": weights(scores)[2],
        "output": weights(scores) @ values,
        "shifted": weights(scores + 5)[2],
        "ratio": halved[2] / halved[0],
        "cold": weights(scores / 1e-6) @ values,
        "hot": weights(scores / 1e6) @ values,
        "most": values.max(),
    }


def weigh_in_floats(power_2, power_3, v_1, v_2, v_3):
    scores = (0, math.log(power_2), math.log(power_3))
    powers = [math.exp(score) for score in scores]
    weights = [power / sum(powers) for power in powers]
    return {
        "most": float(max(v_1, v_2, v_3)),
        "hot": round((v_1 + v_2 + v_3) / 3, 3),
        "cold": float(v_3),
        "ratio": float(power_3 * power_3),
        "shifted": weights[2],
        "output": sum(w * v for w, v in zip(weights, (v_1, v_2, v_3), strict=True)),
        "third": weights[2],
    }


def weigh_in_numpy(power_2, power_3, v_1, v_2, v_3):
    answer = weigh_in_floats(power_2, power_3, v_1, v_2, v_3)
    return {name: np.float32(value) for name, value in answer.items()}


def answers_by_softmax(q, k, v, temperature):
    return torch.softmax(q @ k.T / temperature, dim=1) @ v


def answers_one_by_one(q, k, v, temperature):
    rows = []
    for one in q.double():
        powers = torch.exp(k.double() @ one / temperature)
        rows.append((powers[:, None] * v).sum(dim=0) / powers.sum())
    return torch.stack(rows)


def answers_fused(q, k, v, temperature):
    return F.scaled_dot_product_attention(q, k, v, scale=1 / temperature)


def answers_in_numpy(q, k, v, temperature):
    powers = np.exp(q.numpy() @ k.numpy().T / temperature)
    return powers / powers.sum(axis=1)[:, None] @ v.numpy()


def lookup_by_softmax(q, k, v, temperature):
    scores = torch.einsum("qd,kd->qk", q, k)
    weights = torch.softmax(scores / temperature, dim=-1)
    return [torch.einsum("qk,kv->qv", weights, v), weights]


def lookup_by_logarithms(q, k, v, temperature):
    scores = q @ k.T / temperature
    weights = (scores - scores.logsumexp(dim=-1, keepdim=True)).exp()
    return weights @ v, weights


def lookup_one_by_one(q, k, v, temperature):
    all_weights = []
    for one in q:
        scores = k @ one / temperature
        powers = [math.exp(score - max(scores)) for score in scores]
        all_weights.append([power / sum(powers) for power in powers])
    weights = torch.tensor(all_weights)
    return weights @ v, weights


def lookup_by_package(q, k, v, temperature):
    q, k, v = q.double(), k.double(), v.double()
    return scaled_dot_product_attention(q, k, v, scale=1 / temperature)


def lookup_in_numpy(q, k, v, temperature):
    scores = q.double().numpy() @ k.double().numpy().T / temperature
    powers = np.exp(scores - scores.max(axis=1)[:, None])
    weights = powers / powers.sum(axis=1)[:, None]
    return weights @ v.numpy(), weights


def nearest_by_knowing(d_k, n_k):
    why = "Distance counts the length of a key against it; a dot product does not."
    share = {(4, 16): 0.33, (8, 16): 0.4, (8, 32): 0.3}[d_k, n_k]
    return {"random": share, "unit": 1, "longer": 1, "far": 1, "why": why}


def nearest_by_loop(d_k, n_k):
    def agreement(query_length, key_length):
        same, longer, others = 0, 0, 0
        for _ in range(2000):
            q, k = torch.randn(d_k) * query_length, torch.randn(n_k, d_k)
            if key_length:
                k = F.normalize(k, dim=-1) * key_length
            best, near = (k @ q).argmax(), ((k - q) ** 2).sum(dim=1).argmin()
            same += int(best == near)
            others += int(best != near)
            longer += int((k[best] @ k[best]) > (k[near] @ k[near]))
        return same / 2000, longer / max(others, 1)

    random, longer = agreement(1, None)
    return {
        "random": random,
        "unit": agreement(1, 2.0)[0],
        "longer": longer,
        "far": agreement(1000, None)[0],
        "why": "距离里多了一项 |k|²，点积里没有：赢的钥匙若不是最近的，就一定更长。",
    }


def nearest_in_numpy(d_k, n_k):
    draw = np.random.default_rng(0)
    q, k = draw.normal(size=(5000, 1, d_k)), draw.normal(size=(5000, n_k, d_k))
    length = np.linalg.norm(k, axis=-1)

    def places(q, k):
        near = np.linalg.norm(q - k, axis=-1).argmin(-1)
        return np.einsum("nqd,nkd->nk", q, k).argmax(-1), near

    best, near = places(q, k)
    differs = np.flatnonzero(best != near)
    agree = [
        np.equal(*places(*pair)).mean()
        for pair in ((q, k), (q, k / length[..., None]), (1000 * q, k))
    ]
    return {
        "random": agree[0],
        "unit": agree[1],
        "longer": np.mean(
            length[differs, best[differs]] > length[differs, near[differs]]
        ),
        "far": agree[2],
        "why": "Subtract equation (2) for the two keys: the winner must be longer.",
    }
