"""Other right answers to the exercises of chapter 04: the checks must accept them."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from mha_teach import masks, scaled_dot_product_attention


def looks_by_running(batch, n_q, n_k):
    q, k, v = torch.randn(1, 1, 4), torch.randn(1, 2, 4), torch.randn(1, 2, 4)
    yes = torch.tensor([[True, False]])
    alone = F.scaled_dot_product_attention(q, k, v, yes)
    module = nn.MultiheadAttention(4, 1, batch_first=True)
    weights = module(q, k, v, attn_mask=yes)[1][0, 0]
    return {
        "function": torch.equal(alone, v[:, :1]),
        "module": weights[0].item() == 1,
        "added": next(x for x in (-torch.inf, 1.0, 0.0) if (q + x == q).all()),
        "filled": torch.ones(1).masked_fill(torch.tensor([1]) == 0, -1e9).item(),
        "padding": masks.padding([1] * batch, n_k).shape,
        "causal": masks.causal(n_q, n_k).tensor().sum(),
    }


def looks_by_adding_up(batch, n_q, n_k):
    return {
        "causal": sum(n_k - i for i in range(n_q)),
        "padding": [batch, 1, 1, n_k],
        "filled": 1.0,
        "added": 0,
        "module": np.False_,
        "function": np.True_,
    }


def looks_as_tensors(batch, n_q, n_k):
    answer = looks_by_adding_up(batch, n_q, n_k)
    return {name: torch.tensor(value) for name, value in answer.items()}


def read_fused(q, k, v, lengths):
    return F.scaled_dot_product_attention(
        q, k, v, masks.padding(lengths, k.shape[1])[:, 0]
    )


def read_one_by_one(q, k, v, lengths):
    """Leave the padding out, sentence by sentence."""
    answers = []
    for q_b, k_b, v_b, length in zip(q, k, v, lengths.tolist(), strict=True):
        scores = torch.einsum("qd,kd->qk", q_b, k_b[:length]) * q.shape[-1] ** -0.5
        answers.append(torch.softmax(scores, dim=-1) @ v_b[:length])
    return torch.stack(answers)


def read_with_a_large_number(q, k, v, lengths):
    is_real = (torch.arange(k.shape[1]).unsqueeze(0) < lengths.unsqueeze(1)).unsqueeze(
        1
    )
    scores = torch.matmul(q, k.transpose(-2, -1)) / q.size(-1) ** 0.5
    return torch.matmul(F.softmax(scores.masked_fill(is_real == 0, -1e9), dim=-1), v)


def read_in_numpy(q, k, v, lengths):
    q, k, v = (t.double().numpy() for t in (q, k, v))
    is_real = np.arange(k.shape[1]) < lengths.numpy()[:, None]
    shares = np.exp(q @ np.swapaxes(k, 1, 2) / np.sqrt(q.shape[-1]))
    shares = shares * is_real[:, None]
    return shares @ v / shares.sum(axis=-1, keepdims=True)


def causal_by_tril(n_q, n_k):
    return torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)


def causal_by_loop(n_q, n_k):
    rows = [[j <= i + n_k - n_q for j in range(n_k)] for i in range(n_q)]
    return torch.tensor(rows)


def causal_by_counting_down(n_q, n_k):
    """Count the tokens that come after: a query may not see that many keys."""
    after = torch.arange(n_q - 1, -1, -1)
    return torch.arange(n_k).expand(n_q, n_k) < n_k - after.unsqueeze(1)


def causal_by_package(n_q, n_k):
    return masks.causal(n_q, n_k).tensor()


def causal_in_numpy(n_q, n_k):
    return np.tri(n_q, n_k, n_k - n_q, dtype=bool)


def padding_by_loop(lengths, n_k):
    mask = torch.zeros(len(lengths), 1, 1, n_k, dtype=torch.bool)
    for row, length in zip(mask, lengths, strict=True):
        row[..., :length] = True
    return mask


def padding_by_filling(lengths, n_k):
    counts = torch.as_tensor(lengths).view(-1, 1, 1, 1)
    return ~(torch.arange(n_k) >= counts)


def padding_by_lists(lengths, n_k):
    rows = [[[[j < length for j in range(n_k)]]] for length in lengths]
    return torch.tensor(rows)


def padding_by_package(lengths, n_k):
    return masks.padding(lengths, n_k)


def padding_in_numpy(lengths, n_k):
    return (np.arange(n_k) < np.array(lengths)[:, np.newaxis])[
        :, np.newaxis, np.newaxis
    ]


def attention_fused(q, k, v, mask):
    units = torch.eye(k.shape[-2], dtype=k.dtype).expand(*k.shape[:-1], -1)
    weights = F.scaled_dot_product_attention(q, k, units, attn_mask=mask)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask), weights


def attention_by_package(q, k, v, mask):
    return scaled_dot_product_attention(q, k, v, mask)


def attention_with_zeros_over_nan(q, k, v, mask):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
    weights = weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0)
    return weights @ v, weights


def attention_by_where(q, k, v, mask):
    scores = torch.einsum("...qd,...kd->...qk", q, k) / q.shape[-1] ** 0.5
    weights = torch.where(mask, scores, -torch.inf).softmax(dim=-1).nan_to_num(0)
    return torch.einsum("...qk,...kd->...qd", weights, v), weights


def attention_with_the_lowest_number(q, k, v, mask):
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
    scores = scores.masked_fill(mask.logical_not(), torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1) * mask
    return [weights @ v, weights]


def attention_by_query(q, k, v, mask):
    """Look at the allowed keys alone, one query after the other."""
    batch, n_q, n_k = len(q), q.shape[1], k.shape[1]
    mask = mask.expand(batch, n_q, n_k)
    output, weights = q.new_zeros(batch, n_q, v.shape[2]), q.new_zeros(batch, n_q, n_k)
    for b in range(batch):
        for i in range(n_q):
            seen = mask[b, i].nonzero()[:, 0]
            if len(seen):
                shares = (k[b, seen] @ q[b, i] / q.shape[-1] ** 0.5).softmax(dim=0)
                weights[b, i, seen] = shares
                output[b, i] = shares @ v[b, seen]
    return output, weights


def attention_in_numpy(q, k, v, mask):
    q, k, v = (t.detach().double().numpy() for t in (q, k, v))
    shares = np.exp(q @ np.swapaxes(k, -2, -1) / np.sqrt(q.shape[-1])) * mask.numpy()
    total = shares.sum(axis=-1, keepdims=True)
    weights = shares / np.where(total == 0, 1, total)
    return weights @ v, weights


def is_causal_with_ones(attend, n):
    x = torch.randn(n, 8)
    was = attend(x)
    for j in range(n):
        now = attend(torch.cat([x[:j], torch.ones(1, 8), x[j + 1 :]]))
        for i in range(n):
            if was[i].isnan().any() or torch.equal(was[i], now[i]) == (j <= i):
                return False
    return True


def is_causal_with_zeros(attend, n):
    """Hide the tokens from t on, then the token t - 1 alone."""
    x = torch.randn(n, 8)
    y = attend(x)
    for t in range(1, n + 1):
        later, one = x.clone(), x.clone()
        later[t:], one[t - 1] = 0, 0
        hidden = torch.allclose(attend(later)[:t], y[:t], atol=1e-6)
        seen = (attend(one)[t - 1 :] - y[t - 1 :]).abs().amax(dim=1) > 1e-6
        if not (hidden and seen.all()):
            return False
    return True


def is_causal_by_gradient(attend, n):
    for i in range(n):
        x = torch.randn(n, 8, requires_grad=True)
        attend(x)[i].sum().backward()
        size = x.grad.abs().sum(dim=1)
        if not (size[: i + 1] > 0).all() or size[i + 1 :].any():
            return False
    return True


def is_causal_by_jacobian(attend, n):
    """Sum up how much each output depends on each token."""
    x = torch.randn(n, 8)
    slopes = torch.autograd.functional.jacobian(attend, x)
    depends = slopes.abs().sum(dim=(1, 3)) > 0
    return np.array_equal(depends.numpy(), np.tri(n, dtype=bool))
