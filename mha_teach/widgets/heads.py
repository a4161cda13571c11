"""Heads answers: what the number of heads and their width change, together."""

from collections.abc import Mapping
from typing import NamedTuple, SupportsIndex

import numpy as np

from mha_teach import costs
from mha_teach.widgets._choices import whole
from mha_teach.widgets._grid import check_grid, halves
from mha_teach.widgets._host import Explorer, table
from mha_teach.widgets._svg import (
    ACCENT,
    MUTE,
    WARM,
    css,
    half_up,
    ink_on,
    percent,
    ramp,
    rect,
    svg,
    words,
)

COSTS = ("parameters", "FLOPs, one pass", "bytes of scores")


class Look(NamedTuple):
    """What the last token sees: each of shape (head, position)."""

    scores: np.ndarray
    weights: np.ndarray


class Heads(Explorer):
    r"""Show how shapes, cost, attention maps and accuracy change with h and d_k.

    Each setting is a small trained layer. Its maps and numbers are computed in the
    browser, :math:`softmax(q k^\top / \sqrt{d_k})`, from the queries, keys and values
    of the last token; accuracy and answers were recorded when the layer was trained.

    Parameters
    ----------
    grid : mapping
        The content of ``chapters/artifacts/heads_grid.json``.
    num_heads, d_k : int
        The setting shown first, one of those in ``grid``.
    selected_head, selected_key : int
        The head and the position whose number is followed, counted from 0.
        ``selected_key`` defaults to the first position that the last token asks for.

    Raises
    ------
    ValueError
        If ``grid`` is something else, or has no such setting, head or position.
    TypeError
        If a choice is no int.

    Notes
    -----
    As the last line of a cell it displays without a kernel; ``live()`` returns it as a
    widget whose four choices Python reads, sets and observes.
    """

    parts = (
        "kit.css",
        "heads.css",
        "kit.mjs",
        "view.mjs",
        "formulas.mjs",
        "heads_model.mjs",
        "heads_draw.mjs",
        "heads.mjs",
    )
    choices = {
        "num_heads": whole,
        "d_k": whole,
        "selected_head": whole,
        "selected_key": whole,
    }

    def __init__(
        self,
        grid: Mapping,
        *,
        num_heads: SupportsIndex = 2,
        d_k: SupportsIndex = 8,
        selected_head: SupportsIndex = 0,
        selected_key: SupportsIndex | None = None,
    ):
        check_grid(grid)
        self.grid = grid
        self.num_heads = num_heads
        self.d_k = d_k
        self.selected_head = selected_head
        self.selected_key = selected_key
        if selected_key is None:
            self.selected_key = grid["example"]["pointers"][0]
        self.check()

    def live(self):
        """Return the explorer as a widget with ``num_heads``, ``d_k`` and the rest."""
        from mha_teach.widgets.live import LiveHeads

        return LiveHeads(self)

    def data(self) -> dict:
        """Return the grid as it came."""
        return {"grid": dict(self.grid)}

    def allowed(self) -> dict:
        """Return the values that each choice may take."""
        return {
            "num_heads": self._axis("num_heads"),
            "d_k": self._axis("d_k"),
            "selected_head": range(self.num_heads),
            "selected_key": range(self.grid["task"]["positions"] + 1),
        }

    def _axis(self, name: str) -> list[int]:
        return sorted({cell[name] for cell in self.grid["cells"].values()})

    def cell(self, num_heads: int, d_k: int) -> Mapping:
        """Return the record of one setting."""
        return self.grid["cells"][f"h{num_heads}_dk{d_k}"]

    def look(self) -> Look:
        """Return what the last token sees in the setting shown."""
        cell = self.cell(self.num_heads, self.d_k)
        q = halves(cell["q"]).reshape(self.num_heads, 1, self.d_k)
        k = halves(cell["k"]).reshape(self.num_heads, -1, self.d_k)
        scores = (q * k).sum(-1) / self.d_k**0.5
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return Look(scores, powers / powers.sum(-1, keepdims=True))

    def costs(self, num_heads: int, d_k: int) -> tuple[int, int, int]:
        """Return parameters, FLOPs of one pass, and bytes of the scores in float32."""
        task = self.grid["task"]
        d_model, n = task["d_model"], task["positions"] + 1
        widths = {"d_k": d_k, "d_v": task["d_v"]}
        return (
            costs.parameters(d_model, num_heads, bias=False, **widths),
            costs.forward_flops(d_model, num_heads, n, **widths),
            costs.score_bytes(num_heads, n),
        )

    def share(self, num_heads: int, d_k: int) -> str:
        """Return how often both look-ups are right, on average over the runs."""
        accuracy = self.cell(num_heads, d_k)["accuracy"]
        return percent(sum(accuracy) / len(accuracy))

    def sentence(self) -> str:
        """Say how often this setting is right, and the same width with other heads."""
        accuracy = self.cell(self.num_heads, self.d_k)["accuracy"]
        low, high = percent(min(accuracy)), percent(max(accuracy))
        runs = len(accuracy)
        spread = f"from {low} to {high} over {runs} runs"
        if low == high:
            spread = f"in each of {runs} runs"
        other = 2 if self.num_heads == 1 else 1
        return (
            f"{_heads(self.num_heads)} of width {self.d_k}: both letters right in "
            f"{self.share(self.num_heads, self.d_k)} of cases, {spread}; "
            f"{_heads(other)} of the same width: {self.share(other, self.d_k)}."
        )

    def alt(self) -> str:
        """Describe the static picture."""
        weights = self.look().weights
        slots = self.grid["example"]["pointers"]
        per_head = "; ".join(
            f"head {i}: {row[slots[0]]:.2f} on a, {row[slots[1]]:.2f} on b"
            for i, row in enumerate(weights)
        )
        return (
            f"Above, the accuracy of {len(self.grid['cells'])} small layers by number "
            f"and width of heads, one dot a run, and the cost of the setting with "
            f"{_heads(self.num_heads)} of width {self.d_k}. Below, the weights of its "
            f"last token over {weights.shape[1]} positions. On the two positions it "
            f"asks for, {per_head}."
        )

    def table(self) -> str:
        """List every setting with its cost and accuracy."""
        rows = [
            (h, d_k, *(f"{n:,}" for n in self.costs(h, d_k)), self.share(h, d_k))
            for h in self._axis("num_heads")
            for d_k in self._axis("d_k")
        ]
        return table("All settings", ("heads", "d_k", *COSTS, "both right"), rows)

    def picture(self) -> str:
        """Draw accuracy, cost and weights."""
        parts = self._landscape() + self._cost_column() + self._strips()
        return svg(700, 246 + 28 * self.num_heads, parts)

    def _landscape(self) -> list[str]:
        label = {"size": 12, "fill": MUTE}
        widths = self._axis("d_k")
        parts = [words(20, 30, "heads", **label), words(80, 30, "width d_k", **label)]
        parts += [
            words(180 + 72 * c, 30, d_k, **label, anchor="middle")
            for c, d_k in enumerate(widths)
        ]
        for r, num_heads in enumerate(self._axis("num_heads")):
            y = 38 + 40 * r
            parts.append(words(40, y + 23, num_heads, **label))
            for c, d_k in enumerate(widths):
                x = 146 + 72 * c
                here = (num_heads, d_k) == (self.num_heads, self.d_k)
                colours = ("#e3eefa", ACCENT) if here else ("#f4f5f7", "none")
                share = self.share(num_heads, d_k)
                parts.append(rect(x, y, 68, 36, *colours))
                parts.append(words(x + 34, y + 17, share, anchor="middle"))
                parts += [
                    f'<circle cx="{x + 6 + half_up(56 * a)}" cy="{y + 27}" r="2.5" '
                    f'fill="{ACCENT}"/>'
                    for a in self.cell(num_heads, d_k)["accuracy"]
                ]
        return parts

    def _cost_column(self) -> list[str]:
        parts = []
        for i, value in enumerate(self.costs(self.num_heads, self.d_k)):
            parts.append(words(470, 54 + 44 * i, COSTS[i], size=12, fill=MUTE))
            parts.append(words(470, 74 + 44 * i, f"{value:,}", size=17))
        return parts

    def _strips(self) -> list[str]:
        example, symbols = self.grid["example"], self.grid["task"]["symbols"]
        letters = [symbols[token] for token in example["tokens"]] + ["?"]
        marks = dict(zip(example["pointers"], "ab", strict=True))
        label = {"size": 12, "fill": MUTE}
        heading = "Where the last token looks, one line a head"
        parts = [words(20, 222, heading, **label)]
        for i, weights in enumerate(self.look().weights):
            y = 232 + 28 * i
            parts.append(words(20, y + 17, f"head {i}", **label))
            for at, weight in enumerate(weights):
                x, rgb, mark = 80 + 35 * at, ramp(weight), marks.get(at)
                text = f"{letters[at]} {mark}" if mark else letters[at]
                style = {"size": 12, "fill": ink_on(rgb), "anchor": "middle"}
                parts.append(rect(x, y, 34, 25, css(rgb), WARM if mark else "none"))
                parts.append(words(x + 17, y + 17, text, **style))
        return parts


def _heads(n: int) -> str:
    return f"{n} head" if n == 1 else f"{n} heads"
