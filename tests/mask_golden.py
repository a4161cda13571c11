"""What the package says the explorer Mask must show; run this file to write it down.

The tests compare it with ``golden/mask.json``, and JavaScript with that file.
"""

import json
from pathlib import Path

import numpy as np
import torch

from mha_teach import masks, scaled_dot_product_attention
from mha_teach.widgets import Mask
from widget_golden import rounded

PATH = Path(__file__).parent / "golden" / "mask.json"
CHINESE = ["球", "没", "进", "网", "没"]
ODD = [
    "</script>",
    "a&b",
    '"',
    "👩‍🏫👩‍🏫👩‍🏫👩‍🏫",
    "العربية",
    "t0",
    "a rather long word",
]


def painted(n: int, *forbidden: int) -> np.ndarray:
    """Return a mask with a few cells above the diagonal and some empty rows."""
    mask = np.tril(np.ones((n, n), bool))
    mask[1::3, 2::2] = True
    mask[list(forbidden)] = False
    return mask


def explorers() -> list[Mask]:
    padding = masks.padding([5], 7)
    return [
        Mask(masks.causal(6)),
        Mask(masks.causal(5), CHINESE, changed=1),
        Mask(np.ones((10, 10), bool), changed=6),
        Mask(padding[0, 0].expand(7, 7), ODD, changed=5, title="<b>Who?</b>"),
        Mask(masks.combine(masks.causal(7), padding)[0, 0]),
        Mask(masks.window(6, 3), changed=0),
        Mask(painted(5), changed=4),
        Mask(painted(5), changed=3),
        Mask(painted(7, 2), ODD),
        Mask(painted(7, 2, 5, 6), changed=6),
        Mask(np.zeros((2, 2), bool), ["a", "t1"]),
    ]


def golden() -> list[dict]:
    return [expected(explorer) for explorer in explorers()]


def expected(explorer: Mask) -> dict:
    weights, outputs = attention(explorer)
    change = (outputs[1] - outputs[0]).abs().amax(-1)
    return explorer.state() | {
        "sentence": explorer.sentence(),
        "preset": explorer.preset,
        "verdicts": explorer.verdicts(),
        "picture": explorer.picture(),
        "weights": rounded(weights.numpy()),
        "outputs": rounded(outputs.numpy()),
        "change": rounded(change.numpy()),
    }


def attention(explorer: Mask) -> tuple[torch.Tensor, torch.Tensor]:
    """Return weights and outputs of the package, before and after the change."""
    data, at = explorer.data()["attention"], explorer.changed
    before, after = (
        [torch.tensor(data[when][x], dtype=torch.float64) for x in "qkv"]
        for when in ("before", "after")
    )
    mixed = [torch.cat([a[:at], b[at:]]) for a, b in zip(before, after, strict=True)]
    mask = torch.tensor(explorer.mask)
    both = [scaled_dot_product_attention(*qkv, mask) for qkv in (before, mixed)]
    return (
        torch.stack([result.weights for result in both]),
        torch.stack([result.output for result in both]),
    )


def written() -> str:
    return json.dumps(golden(), ensure_ascii=False, indent=None, sort_keys=True) + "\n"


if __name__ == "__main__":
    PATH.write_text(written(), encoding="utf-8")
