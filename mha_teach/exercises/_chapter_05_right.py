"""Other right answers to the exercises of chapter 05: the checks must accept them."""

from itertools import product

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from mha_teach import MultiHeadAttention, costs


def kept_by_trying(value_a, value_b, share, letters, d_model):
    """Draw the averages and build the modules, and count."""
    pairs = product(torch.eye(letters), repeat=2)
    averages = {tuple((a + b).tolist()) for a, b in pairs}

    def parameters(num_heads, d_k):
        module = MultiHeadAttention(d_model, num_heads, d_k=d_k, bias=False)
        return sum(parameter.numel() for parameter in module.parameters())

    return {
        "even": np.mean([value_b, value_a]),
        "uneven": np.average([value_b, value_a], weights=[share, 1 - share]),
        "averages": len(averages),
        "two": parameters(2, d_model // 2),
        "wide": parameters(2, d_model),
    }


def kept_by_costs(value_a, value_b, share, letters, d_model):
    return {
        "wide": costs.parameters(d_model, 2, d_k=d_model, bias=False),
        "two": costs.parameters(d_model, 2, bias=False),
        "averages": letters + letters * (letters - 1) / 2,
        "uneven": value_b * share + value_a - value_a * share,
        "even": (value_a + value_b) / 2,
    }


def kept_as_tensors(value_a, value_b, share, letters, d_model):
    answer = kept_by_costs(value_a, value_b, share, letters, d_model)
    return {name: torch.tensor(float(value)) for name, value in answer.items()}


def two_heads_by_loop(x, context, w_q, w_k, w_v, w_o):
    brought = []
    for each_q, each_k, each_v in zip(w_q, w_k, w_v, strict=True):
        scores = (x @ each_q) @ (context @ each_k).T / each_q.shape[1] ** 0.5
        brought.append(scores.softmax(dim=1) @ (context @ each_v))
    return torch.cat(brought, dim=1) @ w_o


def two_heads_by_blocks(x, context, w_q, w_k, w_v, w_o):
    """Give each head its own rows of W^O, and add up."""
    blocks = w_o.unflatten(0, (len(w_v), -1))
    scores = torch.einsum("nd,hdk,mc,hck->hnm", x, w_q, context, w_k)
    weights = (scores * w_q.shape[-1] ** -0.5).softmax(-1)
    return torch.einsum("hnm,mc,hcv,hvd->nd", weights, context, w_v, blocks)


def two_heads_fused(x, context, w_q, w_k, w_v, w_o):
    brought = F.scaled_dot_product_attention(x @ w_q, context @ w_k, context @ w_v)
    return torch.hstack(brought.unbind()) @ w_o


def two_heads_by_module(x, context, w_q, w_k, w_v, w_o):
    h, d_model, d_k = w_q.shape
    module = MultiHeadAttention(
        d_model, h, d_k=d_k, d_v=w_v.shape[-1], d_context=context.shape[1], bias=False
    )
    stacked = {"q_proj": w_q, "k_proj": w_k, "v_proj": w_v}
    weights = {f"{name}.weight": w.mT.flatten(0, 1) for name, w in stacked.items()}
    module.load_state_dict(weights | {"out_proj.weight": w_o.T})
    return module.trace(x, context).output


def two_heads_in_numpy(x, context, w_q, w_k, w_v, w_o):
    x, context, w_q, w_k, w_v, w_o = (
        t.double().numpy() for t in (x, context, w_q, w_k, w_v, w_o)
    )
    scores = (x @ w_q) @ np.swapaxes(context @ w_k, 1, 2) / np.sqrt(w_q.shape[2])
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    brought = shares @ (context @ w_v) / shares.sum(axis=-1, keepdims=True)
    return np.concatenate(list(brought), axis=1) @ w_o


def by_hand_one_by_one(places, letters):
    """Write every one where it belongs."""
    d_model = letters + 3 * places
    w_q, w_k = torch.zeros(2, d_model, places), torch.zeros(2, d_model, places)
    w_v = torch.zeros(2, d_model, letters)
    for i in range(places):
        w_q[0, letters + 2 * places + i, i] = 40
        w_q[1, letters + places + i, (i + 1) % places] = 40
        w_k[:, letters + i, i] = 1
    for i in range(letters):
        w_v[:, i, i] = 1
    return w_q, w_k, w_v


def by_hand_with_moved_keys(places, letters):
    """Let each token say that it stands one place further to the left."""
    d_model = letters + 3 * places
    letter, place, a, b = torch.eye(d_model).split([letters, *[places] * 3], dim=1)
    w_k = torch.stack([place, place.roll(-1, dims=1)])
    return torch.stack([30 * b, 30 * a]), w_k, torch.stack([letter, letter])


def by_hand_turned(places, letters):
    """Turn queries and keys together: no dot product changes."""
    w_q, w_k, w_v = by_hand_with_moved_keys(places, letters)
    turn, _ = torch.linalg.qr(torch.randn(places, places, dtype=torch.float64))
    return w_q.double() @ turn, w_k.double() @ turn, w_v.double()


def by_hand_in_numpy(places, letters):
    d_model = letters + 3 * places
    identity = np.eye(d_model)
    letter, place, a, b = np.split(
        identity, np.cumsum([letters, places, places]), axis=1
    )
    w_q = 50 * np.stack([b, np.roll(a, 1, axis=1)])
    return w_q, np.stack([place, place]), 3 * np.stack([letter, letter])


def read_by_thinking(letters, alpha):
    """Count averages, and draw the line between two letters."""
    averages = {frozenset(pair) for pair in product(range(letters), repeat=2)}
    return {
        "even": len(averages),
        "first": letters**2,
        "second": letters,
        "turned": letters**2,
        "bent": letters**2,
        "why": "On the line between two letters the second answers alternate, and a "
        "linear function changes its sign once.",
    }


def read_by_training(letters, alpha):
    """Train the readouts instead of solving for them."""
    pairs = torch.cartesian_prod(*[torch.arange(letters)] * 2)

    def counts(readout, alpha):
        average = torch.tensor([alpha, 1 - alpha]) @ torch.eye(letters)[pairs]
        optimizer = torch.optim.Adam(readout.parameters(), 0.05)
        for _ in range(300):
            logits = readout(average).unflatten(-1, (2, letters))
            loss = F.cross_entropy(logits.flatten(0, 1), pairs.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return (logits.argmax(-1) == pairs).sum(dim=0)

    first, second = counts(nn.Linear(letters, 2 * letters), alpha)
    _, turned = counts(nn.Linear(letters, 2 * letters), 1 - alpha)
    hidden = nn.Linear(letters, 64), nn.ReLU()
    network = nn.Sequential(*hidden, nn.Linear(64, 2 * letters))
    return {
        "even": letters * (letters + 1) / 2,
        "first": first,
        "second": second,
        "turned": turned,
        "bent": counts(network, alpha).min(),
        "why": "线性读出看到的只是一个平均：谁的权重大，就只能读出谁。",
    }


def read_as_tensors(letters, alpha):
    answer = read_by_thinking(letters, alpha)
    why = answer.pop("why")
    return {name: torch.tensor(each) for name, each in answer.items()} | {"why": why}
