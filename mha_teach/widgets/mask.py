"""Mask answers: who may look at whom, and does the future leak."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple, SupportsIndex

import numpy as np

from mha_teach.widgets._choices import whole
from mha_teach.widgets._host import Explorer, table
from mha_teach.widgets._inputs import as_labels
from mha_teach.widgets._presets import Preset, presets
from mha_teach.widgets._rows import MAX_TOKENS, Rows, mask_rows
from mha_teach.widgets._svg import (
    ACCENT,
    INK,
    MUTE,
    WARM,
    half_up,
    listed,
    number,
    printable,
    rect,
    short,
    svg,
    words,
)

D_MODEL, D_K, D_V = 4, 3, 2
# With this seed every leak, of any mask, moves an output by 0.05 or more.
SEED = 115
MOVED = 1e-9
READER = "fine for a model that reads, a leak for one that writes"
READING = (
    "A prime (′) marks a new token. A hollow bar may move, a filled one leaks.",
    "In the orange frame earlier tokens would look at new ones.",
)
HEADER = ("token", "may look at", "before", "after", "largest change", "verdict")
_SIZE, _LEFT, _UNIT = 30, 110, 40  # pixels; _UNIT is a change of 1
_WASH, _EDGE, _LINE = "#f4f6f9", "#8791a0", "#d9dee5"


class Look(NamedTuple):
    """What the head computes, before and after: weights (2, n, n), outputs (2, n, d_v).

    ``change`` (n,) is the largest change among the numbers of an output.
    """

    weights: np.ndarray
    outputs: np.ndarray
    change: np.ndarray


class Mask(Explorer):
    r"""Show a mask as a grid to paint, and whether it lets the future leak.

    A small head with fixed, random q, k and v attends under the mask. Then one token
    and all after it are replaced, and it attends again: the output of an earlier token
    that moves is a leak. A token that may look at nobody has zero weights and output.

    Parameters
    ----------
    mask : array of shape (n, n)
        True = may attend; queries in rows, keys in columns, 2 to 10 of each. A NumPy
        array, a tensor, rows of bools, or ``masks.causal(n)``.
    tokens : sequence of str, optional
        The names of the n tokens; t0, t1, … by default.
    changed : int, optional
        The first token that is replaced, counted from 0; the last one by default.
    title : str
        The question above the picture.

    Raises
    ------
    ValueError
        If the mask has another shape, tokens and mask differ in number, or there is no
        such token to change.
    TypeError
        If the mask is not bool, a token no str, or ``changed`` no int.

    Notes
    -----
    As the last line of a cell it displays without a kernel; ``live()`` returns it as a
    widget whose ``mask``, ``changed`` and ``preset`` Python reads, sets and observes.
    """

    parts = (
        "kit.css",
        "controls.css",
        "mask.css",
        "kit.mjs",
        "view.mjs",
        "controls.mjs",
        "formulas.mjs",
        "mask_model.mjs",
        "mask.mjs",
    )
    choices = {"mask": mask_rows, "changed": whole}

    def __init__(
        self,
        mask,
        tokens: Sequence[str] | None = None,
        *,
        changed: SupportsIndex | None = None,
        title: str = "Who may look at whom?",
    ):
        self.mask = mask_rows("mask", mask)
        n = len(self.mask)
        self.tokens = [f"t{i}" for i in range(n)]
        if tokens is not None:
            self.tokens = as_labels("tokens", tokens, f"mask has {n} rows", n)
        self.title = printable(title)
        self.changed = n - 1 if changed is None else changed
        self.check()

    def live(self):
        """Return the explorer as a widget with ``mask``, ``changed`` and ``preset``."""
        from mha_teach.widgets.live import LiveMask

        return LiveMask(self)

    def data(self) -> dict:
        """Return labels, presets, and q, k and v of every token, as is and replaced."""
        n = len(self.tokens)
        before, after = (
            {name: array.tolist() for name, array in qkv.items()}
            for qkv in (_tokens(n, n), _tokens(n, 0))
        )
        return {
            "attention": {
                "title": self.title,
                "tokens": self.tokens,
                "presets": [
                    preset._asdict() | {"mask": [list(row) for row in preset.mask]}
                    for preset in presets(n)
                ],
                "before": before,
                "after": after,
            }
        }

    def allowed(self) -> dict:
        """Return the values that ``changed`` may take; masks are too many to list."""
        return {"changed": range(len(self.tokens))}

    def check_choice(self, name: str, value: object) -> None:
        """Raise ``TypeError`` or ``ValueError`` if a choice cannot be ``value``."""
        if name != "mask":
            return super().check_choice(name, value)
        rows, n = len(mask_rows(name, value)), len(self.tokens)
        if rows != n:
            raise ValueError(
                f"mask is {rows} by {rows}, but there are {n} tokens; "
                "make a new Mask(…)"
            )
        return None

    @property
    def preset(self) -> str:
        """The name of the preset that the mask equals, or "painted"."""
        preset = self._preset()
        return preset.name if preset else "painted"

    def _preset(self) -> Preset | None:
        found = (x for x in presets(len(self.tokens)) if x.mask == self.mask)
        return next(found, None)

    def preset_mask(self, name: str) -> Rows:
        """Return the mask of a preset.

        Raises
        ------
        ValueError
            If so many tokens have no such preset.
        """
        known = {preset.name: preset.mask for preset in presets(len(self.tokens))}
        if name not in list(known):
            raise ValueError(
                f"preset={name!r} does not exist here; choose from {', '.join(known)}"
            )
        return known[name]

    def look(self) -> Look:
        """Return weights and outputs, before and after, and the change."""
        n, mask = len(self.tokens), np.array(self.mask)
        both = [_attend(**_tokens(n, at), mask=mask) for at in (n, self.changed)]
        weights, outputs = map(np.stack, zip(*both, strict=True))
        return Look(weights, outputs, np.abs(outputs[1] - outputs[0]).max(-1))

    def verdicts(self) -> list[str]:
        """Say of each token what its output does."""
        moved = (self.look().change > MOVED).tolist()
        return [
            _verdict(any(row), i >= self.changed, moved[i])
            for i, row in enumerate(self.mask)
        ]

    def sentence(self) -> str:
        """Say what the mask allows, whether it leaks, and who may look at nobody."""
        parts = (self._allows(), self._leaks(), self._nobody())
        return " ".join(filter(None, parts))

    def _allows(self) -> str:
        preset, n = self._preset(), len(self.tokens)
        if preset:
            return preset.says
        return f"Painted: {sum(map(sum, self.mask))} of {n * n} cells are allowed."

    def _leaks(self) -> str:
        at, leaks = self._name(self.changed), self.verdicts().count("leaks")
        if self.changed == 0:
            return f"No output comes before {at}, so nothing can leak."
        if leaks:
            moved = f"{leaks} outputs before {at} move"
            if leaks == 1:
                moved = f"1 output before {at} moves"
            return f"{moved}: {READER}."
        still = f"Changing {self._from(self.changed)} moves no earlier output"
        elsewhere = filter(self._leaks_at, range(1, len(self.tokens)))
        for other in elsewhere:
            return f"{still}, but changing {self._from(other)} does."
        return f"{still}: no leak."

    def _leaks_at(self, changed: int) -> bool:
        return "leaks" in self.at(changed=changed).verdicts()

    def _nobody(self) -> str:
        names = [self._name(i) for i, row in enumerate(self.mask) if not any(row)]
        if not names:
            return ""
        zero = "its output is" if len(names) == 1 else "their outputs are"
        return f"T{listed(names)[1:]} may look at nobody: {zero} zero."

    def _name(self, i: int) -> str:
        label = self.tokens[i]
        return f"token {i}" if label == f"t{i}" else f"token {i} (“{label}”)"

    def _from(self, i: int) -> str:
        rest = "" if i == len(self.tokens) - 1 else " and all after it"
        return self._name(i) + rest

    def alt(self) -> str:
        """Describe the static picture."""
        n = len(self.tokens)
        rows = "; ".join(
            f"{self.tokens[i]}: {self._seen(row)}" for i, row in enumerate(self.mask)
        )
        return (
            f"A grid of {n} queries in rows and {n} keys in columns; a filled cell may "
            f"be looked at, a crossed one may not. The filled cells by row: {rows}. "
            "Beside each row, a bar for how far its output moves with new tokens from "
            f"{self._name(self.changed)} on."
        )

    def table(self) -> str:
        """List what each token may look at, and its output before and after."""
        look, verdicts = self.look(), self.verdicts()
        rows = [
            (
                self.tokens[i],
                self._seen(row),
                *(_vector(output[i]) for output in look.outputs),
                number(look.change[i]),
                verdicts[i],
            )
            for i, row in enumerate(self.mask)
        ]
        return table(f"New tokens from {self._name(self.changed)} on", HEADER, rows)

    def _seen(self, row: Sequence[bool]) -> str:
        seen = [x for x, allowed in zip(self.tokens, row, strict=True) if allowed]
        return ", ".join(seen) or "nobody"

    def picture(self) -> str:
        """Draw the grid, the leak meter beside it, and what the marks mean."""
        side = _SIZE * len(self.tokens)
        parts = [*self._labels(), *self._cells(), *self._meter()]
        parts += _legend(self._top() + side + 18)
        return svg(_LEFT + side + 280, self._top() + side + 94, parts)

    def _is_short(self) -> bool:
        return all(len(token) <= 3 for token in self.tokens)

    def _top(self) -> int:
        return 44 if self._is_short() else 104

    def _labels(self) -> list[str]:
        top = self._top()
        parts = [
            words(_LEFT - 8, top - 8, "query\u00a0↓ key\u00a0→", **_SMALL, anchor="end")
        ]
        for i, token in enumerate(self.tokens):
            now = i >= self.changed
            style = {"size": 12, "fill": WARM if now else INK}
            text, middle = short(token) + "′" * now, _SIZE * i + _SIZE // 2
            y = top + middle + 4
            parts.append(words(_LEFT - 8, y, text, **style, anchor="end"))
            if self._is_short():
                x = _LEFT + middle
                parts.append(words(x, top - 8, text, **style, anchor="middle"))
            else:
                x = _LEFT + middle + 4
                parts.append(f'<g transform="translate({x} {top - 6}) rotate(-60)">')
                parts.append(words(0, 0, text, **style) + "</g>")
        return parts

    def _cells(self) -> list[str]:
        top, parts = self._top(), []
        for (r, c), allowed in np.ndenumerate(self.mask):
            kind = "open" if allowed else "shut"
            if allowed and r < self.changed <= c:
                kind = "leak"
            parts += _cell(_LEFT + _SIZE * c, top + _SIZE * r, kind)
        if self.changed:
            tall, wide = self.changed, len(self.tokens) - self.changed
            x = _LEFT + _SIZE * self.changed
            parts.append(rect(x, top, _SIZE * wide, _SIZE * tall, "none", WARM))
        return parts

    def _meter(self) -> list[str]:
        change, side, top = self.look().change, _SIZE * len(self.tokens), self._top()
        x = _LEFT + side + 24
        parts = [words(x, top - 8, "how far each output moves", **_SMALL)]
        parts.append(rect(x - 1, top + 2, 1, side - 4, _LINE))
        for i, verdict in enumerate(self.verdicts()):
            y, width = top + _SIZE * i, half_up(_UNIT * change[i])
            leaks = verdict == "leaks"
            if width:
                colours = (WARM, WARM) if leaks else (_WASH, _EDGE)
                parts.append(rect(x, y + 8, width, 14, *colours))
            style = {"size": 12, "fill": WARM if leaks else MUTE}
            text = f"{number(change[i])} {verdict}"
            parts.append(words(x + width + 6, y + 19, text, **style))
        return parts


_SMALL = {"size": 11, "fill": MUTE}
_MARKS = {
    "open": (ACCENT, ACCENT, "", INK),
    "shut": (_WASH, _EDGE, "×", MUTE),
    "leak": (WARM, WARM, "!", "#ffffff"),
}


def _cell(x: int, y: int, kind: str) -> list[str]:
    fill, stroke, mark, ink = _MARKS[kind]
    box = rect(x + 2, y + 2, _SIZE - 4, _SIZE - 4, fill, stroke)
    middle = _SIZE // 2
    text = words(x + middle, y + 20, mark, size=14, fill=ink, anchor="middle")
    return [box, text] if mark else [box]


def _legend(y: int) -> list[str]:
    parts, meanings = [], {"open": "may look", "shut": "may not", "leak": "leaks"}
    for i, (kind, text) in enumerate(meanings.items()):
        x = _LEFT + 90 * i
        parts += [f'<g transform="translate({x} {y}) scale(0.6)">']
        parts += [*_cell(0, 0, kind), "</g>", words(x + 24, y + 14, text, **_SMALL)]
    for i, line in enumerate(READING, 1):
        parts.append(words(8, y + 18 + 20 * i, line, **_SMALL))
    return parts


def _verdict(sees: bool, changed: bool, moved: bool) -> str:
    if not sees:
        return "sees nobody"
    if changed:
        return "was changed"
    return "leaks" if moved else "stays"


def _vector(numbers: Iterable[float]) -> str:
    return "(" + ",\u00a0".join(map(number, numbers)) + ")"


@cache
def _numbers() -> list[dict[str, np.ndarray]]:
    """Return q, k and v of ten tokens, as they are and replaced."""
    random = np.random.default_rng(SEED)
    both = random.uniform(-1, 1, (2, MAX_TOKENS, D_MODEL))
    widths = {"q": D_K, "k": D_K, "v": D_V}
    weights = {x: random.uniform(-1.5, 1.5, (D_MODEL, d)) for x, d in widths.items()}
    return [{x: (tokens @ w).round(2) for x, w in weights.items()} for tokens in both]


def _tokens(n: int, changed: int) -> dict[str, np.ndarray]:
    """Return q, k and v of n tokens of which those from ``changed`` on are replaced."""
    before, after = _numbers()
    return {x: np.vstack([before[x][:changed], after[x][changed:n]]) for x in before}


def _attend(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and output; a query that may look at nobody gets zeros."""
    scores = q @ k.T / np.sqrt(q.shape[-1])
    top = scores.max(-1, keepdims=True, where=mask, initial=-np.inf)
    powers = np.exp(np.where(mask, scores - top, -np.inf))
    total = powers.sum(-1, keepdims=True)
    weights = powers / np.where(total > 0, total, 1)
    return weights, weights @ v
