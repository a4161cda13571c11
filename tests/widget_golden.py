"""What Python says the explorers must show; run this file to write it down.

The tests compare it with ``golden/widgets.json``, and JavaScript with that file.
"""

import base64
import json
from pathlib import Path

import numpy as np
import torch

import widget_data
from mha_teach import costs, scaled_dot_product_attention
from mha_teach.widgets import AttentionMap, Heads, OneQuery, _svg

PATH = Path(__file__).parent / "golden" / "widgets.json"


def golden() -> dict:
    return {
        "kit": kit(),
        "formulas": formulas(),
        "heads": heads(),
        "attention_map": attention_map(),
        "one_query": one_query(),
    }


def kit() -> dict:
    values = np.array([0, -0.0, 1, -2.5, 65504, 6e-8, 1 / 3], "<f2")
    shades = np.linspace(0, 1, 29).tolist()
    colours = [_svg.ramp(x) for x in shades]
    numbers = [0.0, -0.001, -1.234, 0.005, 0.125, -0.375, 12.5, 1234.567]
    shares = [0.0, 0.0039, 0.014, 0.125, 0.5, 0.994, 0.9999, 1.0]
    edges = [*range(0x30), 0x7F, 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xFFFD, 0xFFFE, 0xFFFF]
    edges += [0x10000, 0x1F3EB, 0x10FFFF]
    return {
        "halves": {
            "text": base64.b64encode(values.tobytes()).decode(),
            "values": values.astype(float).tolist(),
        },
        "numbers": [[x, _svg.number(x), _svg.number(x, 3)] for x in numbers],
        "percents": [[x, _svg.percent(x)] for x in shares],
        "words": [[x, _svg.words(3, 5, f"a{chr(x)}b")] for x in edges],
        "ramp": [
            [x, list(rgb), _svg.ink_on(rgb)]
            for x, rgb in zip(shades, colours, strict=True)
        ],
    }


def formulas() -> dict:
    sizes = [
        {"d_model": d, "num_heads": h, "d_k": d_k, "d_v": d_v, "n": n, "bias": bias}
        for d, h, d_k, d_v, n in [
            (64, 4, 2, 16, 17),
            (17, 3, 5, 7, 11),
            (512, 8, 64, 64, 2),
        ]
        for bias in (True, False)
    ]
    return {"costs": [size | cost(**size) for size in sizes], "attend": attend()}


def cost(d_model, num_heads, d_k, d_v, n, bias) -> dict:
    widths = {"d_k": d_k, "d_v": d_v}
    return {
        "parameters": costs.parameters(d_model, num_heads, bias=bias, **widths),
        "flops": costs.forward_flops(d_model, num_heads, n, **widths),
        "bytes": costs.score_bytes(num_heads, n),
    }


def attend() -> dict:
    generator = torch.Generator().manual_seed(5)
    q, k, v = (
        torch.randn(*shape, generator=generator, dtype=torch.float64).round(decimals=3)
        for shape in [(1, 7), (5, 7), (5, 3)]
    )
    output, weights = scaled_dot_product_attention(q, k, v)
    return {
        "q": q[0].tolist(),
        "k": k.tolist(),
        "v": v.tolist(),
        "weights": rounded(weights[0].numpy()),
        "output": rounded(output[0].numpy()),
    }


def heads() -> dict:
    grid = widget_data.heads_grid()
    shown = [Heads(grid, num_heads=h, d_k=w) for h, w in [(1, 2), (2, 13), (11, 2)]]
    return {"grid": grid, "shown": [heads_state(explorer) for explorer in shown]}


def heads_state(explorer: Heads) -> dict:
    look = explorer.look()
    setting = (explorer.num_heads, explorer.d_k)
    return {
        "setting": setting,
        "sentence": explorer.sentence(),
        "costs": explorer.costs(*setting),
        "scores": rounded(look.scores),
        "weights": rounded(look.weights),
        "picture": explorer.picture(),
    }


def attention_map() -> list[dict]:
    chinese, english = widget_data.CHINESE, widget_data.ENGLISH
    deep = widget_data.weights(3, 2, 7, 7)
    crossed = widget_data.weights(2, 7, 5)
    crossed[0, 3] = np.eye(5)[0]
    one = AttentionMap(deep, chinese, layer=2, head=1, selected_query=4)
    two = AttentionMap(crossed, chinese, english, selected_query=3)
    flat = AttentionMap(
        widget_data.weights(41, 41), [f"token number {i}" for i in range(41)]
    )
    return [
        map_state(explorer)
        for explorer in [one, one.at(hide_special=True), two]
        + [two.at(hide_special=True), two.at(hide_special=True, selected_query=0), flat]
    ]


def map_state(explorer: AttentionMap) -> dict:
    weights, left = explorer.rows(explorer.head)
    return explorer.state() | {
        "sentence": explorer.sentence(),
        "rows": rounded(weights),
        "left": rounded(left),
        "picture": explorer.picture(),
    }


def one_query() -> list[dict]:
    keys, values = widget_data.KEYS, widget_data.VALUES
    plain = OneQuery(keys)
    apart = OneQuery(keys, values, labels=widget_data.KEY_NAMES)
    even = OneQuery([(1, 1), (1, -1)], x=0.7, y=0)
    shown = [plain, plain.at(x=0.0, y=0.0), plain.at(x=-2.9, y=-1.1), even]
    shown += [plain.at(x=3.0, y=3.0), plain.at(x=0.2, y=0.0, temperature=10)]
    shown += [apart, apart.at(temperature=0.1), apart.at(x=0.3, temperature=0.5)]
    shown += [OneQuery([(1, 2), (1, -2), (0, 0)], x=x, y=0) for x in (1.5, -1.5)]
    return [query_state(explorer) for explorer in shown]


def query_state(explorer: OneQuery) -> dict:
    q, k, v = (
        torch.tensor(points, dtype=torch.float64)
        for points in ([[explorer.x, explorer.y]], explorer.keys, explorer.values)
    )
    scale = 1 / explorer.temperature
    output, weights = scaled_dot_product_attention(q, k, v, scale=scale)
    return explorer.state() | {
        "sentence": explorer.sentence(),
        "scores": rounded((q @ k.mT * scale)[0].numpy()),
        "weights": rounded(weights[0].numpy()),
        "output": rounded(output[0].numpy()),
        "picture": explorer.picture(),
    }


def rounded(array: np.ndarray) -> list:
    return np.round(array, 9).tolist()


def written() -> str:
    return json.dumps(golden(), ensure_ascii=False, indent=None, sort_keys=True) + "\n"


if __name__ == "__main__":
    PATH.write_text(written(), encoding="utf-8")
