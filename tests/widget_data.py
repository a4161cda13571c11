"""Made-up inputs for the explorers, in the format of the real ones.

Sizes are primes and differ, so that a swapped axis cannot pass unseen.
"""

import base64

import numpy as np

SYMBOLS = list("ABCDEFGHIJK")
TOKENS = [5, 0, 10, 3, 3, 7, 8]
POINTERS = (5, 2)
D_V = 3


def half(array) -> str:
    return base64.b64encode(np.asarray(array, "<f2").tobytes()).decode()


def heads_grid() -> dict:
    """Return a grid in which the heads look at the two pointers in turn."""
    rng = np.random.default_rng(7)
    cells = {f"h{h}_dk{d_k}": _cell(rng, h, d_k) for h in (1, 2, 11) for d_k in (2, 13)}
    return {
        "task": {
            "d_model": 17,
            "d_v": D_V,
            "positions": len(TOKENS),
            "symbols": SYMBOLS,
            "steps": 400,
            "seeds": [0, 1, 2, 3, 4],
            "guess": 1 / len(SYMBOLS) ** 2,
        },
        "example": {
            "tokens": TOKENS,
            "pointers": list(POINTERS),
            "answer": [TOKENS[at] for at in POINTERS],
        },
        "cells": cells,
    }


def _cell(rng, num_heads: int, d_k: int) -> dict:
    positions = len(TOKENS) + 1
    q = rng.normal(size=(num_heads, d_k))
    k = rng.normal(size=(num_heads, positions, d_k))
    for head in range(num_heads):
        k[head, POINTERS[head % 2]] += 1.5 * q[head]
    low, high = {1: (0.002, 0.3), 2: (0.5, 0.999), 11: (1.0, 1.0)}[num_heads]
    probabilities = rng.dirichlet(np.ones(len(SYMBOLS)), size=2)
    return {
        "num_heads": num_heads,
        "d_k": d_k,
        "accuracy": [round(float(a), 4) for a in np.linspace(low, high, 5)],
        "shown_seed": 2,
        "q": half(q),
        "k": half(k),
        "v": half(rng.normal(size=(num_heads, positions, D_V))),
        "probabilities": half(probabilities),
    }


def weights(*shape: int) -> np.ndarray:
    """Return attention weights of the given shape, each row a softmax."""
    scores = 2 * np.random.default_rng(11).normal(size=shape)
    powers = np.exp(scores)
    return powers / powers.sum(-1, keepdims=True)


CHINESE = ["[CLS]", "球", "没", "进", "网", "##络", "[SEP]"]
ENGLISH = ["[CLS]", "the", "<b>", "net", "[SEP]"]

# OneQuery: a key near the start and a longer one behind it, one at the origin, one in
# the corner; values apart from the keys.
KEYS = [(1.25, 0.5), (2.5, 1.5), (-0.75, 1.9), (0, 0), (3, -3)]
VALUES = [(1, -1), (2, 2.25), (-2, 2), (0.5, 0.25), (-3, -2)]
KEY_NAMES = ["苹果", "<b>pears</b>", "a rather long name", "العربية", "&"]

# Causal, but for one cell above the diagonal and a token that may look at nobody.
MASK = np.tril(np.ones((7, 7), bool))
MASK[1, 4], MASK[5] = True, False
