"""The masks that Mask offers by name."""

from typing import NamedTuple

import numpy as np

from mha_teach.widgets._rows import Rows, mask_rows

PADDED, WIDTH = 2, 3  # tokens of the padding, keys of the window

_MASKS, _TORCH = "from mha_teach import masks", "import torch"


class Preset(NamedTuple):
    """A mask with a name, what it allows in words, and the Python that makes it."""

    name: str
    mask: Rows
    says: str
    imports: str
    code: str


def presets(n: int) -> list[Preset]:
    """Return the presets for n tokens. Each mask comes once: few tokens have fewer."""
    found = {}
    for preset in _named(n, max(1, n - PADDED)):
        found.setdefault(preset.mask, preset)
    return list(found.values())


def _named(n: int, length: int) -> list[Preset]:
    every = np.ones((n, n), bool)
    causal, kept = np.tril(every), every & (np.arange(n) < length)
    window = causal & np.triu(every, 1 - WIDTH)
    past = "each token sees itself and what came before"
    padding = "the last token is padding, and nobody sees it"
    if n - length > 1:
        padding = f"the last {n - length} tokens are padding, and nobody sees them"
    both = f"masks.combine(masks.causal({n}), masks.padding([{length}], {n}))"
    named = (
        ("everyone", every, "each token sees every token"),
        ("causal", causal, past),
        ("padding", kept, padding),
        ("causal and padding", causal & kept, f"{past}; {padding}"),
        ("window", window, f"each token sees itself and the {WIDTH - 1} before it"),
    )
    code = (
        (_TORCH, f"torch.ones({n}, {n}, dtype=torch.bool)"),
        (_MASKS, f"masks.causal({n}).tensor()"),
        (_MASKS, f"masks.padding([{length}], {n})[0, 0].expand({n}, {n})"),
        (_MASKS, f"{both}[0, 0]"),
        (_MASKS, f"masks.window({n}, {WIDTH})"),
    )
    return [
        Preset(name, mask_rows("mask", mask), f"{name.capitalize()}: {says}.", *line)
        for (name, mask, says), line in zip(named, code, strict=True)
    ]
