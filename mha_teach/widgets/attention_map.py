"""AttentionMap answers: what does this head look at."""

import base64
import math
from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np

from mha_teach.widgets._choices import flag, whole
from mha_teach.widgets._host import Explorer, table
from mha_teach.widgets._inputs import as_array, as_code, as_labels
from mha_teach.widgets._svg import (
    ACCENT,
    MUTE,
    css,
    half_up,
    listed,
    number,
    printable,
    ramp,
    rect,
    short,
    svg,
    words,
)

SPECIAL_TOKENS = ("[CLS]", "[SEP]", "[PAD]", "<s>", "</s>", "<pad>")
MAX_TOKENS, MAX_HEADS, MAX_LAYERS = 64, 16, 12
MAX_BYTES = 150_000
BARS = 10
_TOP = 96


class AttentionMap(Explorer):
    r"""Show what each head looks at, on a sentence of your own.

    Each weight is kept in one byte, rounded to 1/255.

    Parameters
    ----------
    weights : array of shape (n_q, n_k), (head, n_q, n_k) or (layer, head, n_q, n_k)
        Weights after the softmax: a NumPy array, a tensor, or a list with one of them
        for each layer.
    tokens : sequence of str
        The n_q tokens that ask, one a row.
    key_tokens : sequence of str, optional
        The n_k tokens that are looked at, one a column; ``tokens`` by default.
    title : str
        The question above the picture.
    layer, head, selected_query : int
        The map and the row shown first, counted from 0.
    hide_special : bool
        Leave special tokens out and scale the weights that remain up to 1.
    special_tokens : sequence of str
        What counts as a special token.

    Raises
    ------
    ValueError
        If an axis is missing or too long, labels and weights differ in number, an entry
        is no weight, or a choice does not exist.
    TypeError
        If weights are no numbers, a label is no str, or a choice of another type.

    Notes
    -----
    As the last line of a cell it displays without a kernel; ``live()`` returns it as a
    widget whose choices Python reads, sets and observes.
    """

    parts = (
        "kit.css",
        "controls.css",
        "attention_map.css",
        "kit.mjs",
        "view.mjs",
        "controls.mjs",
        "attention_map_model.mjs",
        "attention_map.mjs",
    )
    choices = {
        "layer": whole,
        "head": whole,
        "selected_query": whole,
        "hide_special": flag,
    }

    def __init__(
        self,
        weights,
        tokens: Sequence[str],
        key_tokens: Sequence[str] | None = None,
        *,
        title: str = "What does this head look at?",
        layer: SupportsIndex = 0,
        head: SupportsIndex = 0,
        selected_query: SupportsIndex = 0,
        hide_special: bool | np.bool_ = False,
        special_tokens: Sequence[str] = SPECIAL_TOKENS,
    ):
        array = as_array("weights", weights, "numbers from 0 to 1").astype(np.float64)
        _check_shape(array.shape, as_code("weights", weights))
        _check_values(array)
        _check_sums(array.sum(axis=-1))
        self.rank = array.ndim
        self.weights = np.rint(255 * array).astype(np.uint8)
        self.weights = self.weights.reshape((1,) * (4 - array.ndim) + array.shape)
        n_q, n_k = array.shape[-2:]
        if key_tokens is None and n_q != n_k:
            raise ValueError(
                f"weights has {n_q} queries and {n_k} keys; pass key_tokens, "
                f"the {n_k} tokens that are looked at"
            )
        queries, keys = f"weights has {n_q} queries", f"weights has {n_k} keys"
        self.tokens = self.key_tokens = as_labels("tokens", tokens, queries, n_q)
        if key_tokens is not None:
            self.key_tokens = as_labels("key_tokens", key_tokens, keys, n_k)
        self.title = printable(title)
        self.special_tokens = tuple(as_labels("special_tokens", special_tokens))
        self.layer, self.head = layer, head
        self.selected_query, self.hide_special = selected_query, hide_special
        self.check()

    def live(self):
        """Return the explorer as a widget with ``layer``, ``head`` and the rest."""
        from mha_teach.widgets.live import LiveAttentionMap

        return LiveAttentionMap(self)

    def data(self) -> dict:
        """Return labels and weights, one byte a weight."""
        weights = base64.b64encode(self.weights.tobytes()).decode()
        return {
            "map": {
                "title": self.title,
                "tokens": self.tokens,
                "key_tokens": self.key_tokens,
                "special": list(self.special_tokens),
                "rank": self.rank,
                "shape": list(self.weights.shape),
                "weights": weights,
            }
        }

    def allowed(self) -> dict:
        """Return the values that each choice may take."""
        layers, heads, n_q, _ = self.weights.shape
        plain = [self._plain(labels) for labels in (self.tokens, self.key_tokens)]
        return {
            "layer": range(layers),
            "head": range(heads),
            "selected_query": range(n_q),
            "hide_special": (False, True) if all(plain) else (False,),
        }

    def _plain(self, labels: list[str]) -> list[int]:
        return [i for i, x in enumerate(labels) if x not in self.special_tokens]

    def visible(self) -> tuple[list[int], list[int]]:
        """Return which queries and which keys are shown."""
        if self.hide_special:
            return self._plain(self.tokens), self._plain(self.key_tokens)
        return list(range(len(self.tokens))), list(range(len(self.key_tokens)))

    def rows(self, head: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of a head as shown, and what is left of each row."""
        weights = self.weights[self.layer, head][np.ix_(*self.visible())] / 255
        left = weights.sum(-1)
        if self.hide_special:
            weights = weights / np.where(left > 0, left, 1)[:, None]
        return weights, left

    def query(self) -> int:
        """Return the place of the selected query among those shown."""
        queries, _ = self.visible()
        shown = self.selected_query in queries
        return queries.index(self.selected_query) if shown else 0

    def ranking(self) -> list[tuple[str, float, float]]:
        """Return key, weight and mean over the heads, the largest weight first."""
        heads = range(self.weights.shape[1])
        mean = sum(self.rows(head)[0][self.query()] for head in heads) / len(heads)
        row = self.rows(self.head)[0][self.query()]
        keys = [self.key_tokens[j] for j in self.visible()[1]]
        order = sorted(range(len(keys)), key=lambda j: -row[j])
        return [(keys[j], float(row[j]), float(mean[j])) for j in order]

    def sentence(self) -> str:
        """Say what the selected query looks at, and whether its neighbours do too."""
        heads = self.weights.shape[1]
        where = ("", f"Head {self.head}: ", f"Layer {self.layer}, head {self.head}: ")
        ranking = self.ranking()
        best, _, mean = ranking[0]
        said = [f"{number(w)} to “{key}”" for key, w, _ in ranking[:3] if w >= 0.005]
        text = f"{where[self.rank - 2]}“{self.tokens[self._query_index()]}” gives "
        text += f"{listed(said)}." if said else "no weight to the tokens shown."
        if said and heads > 1:
            text += f" The mean over {heads} heads gives “{best}” {number(mean)}."
        if self.hide_special:
            left = number(float(self.rows(self.head)[1][self.query()]))
            text += (
                f" Special tokens are hidden: the {left} of its weight that is left "
                "is scaled up to 1."
            )
        return text

    def _query_index(self) -> int:
        return self.visible()[0][self.query()]

    def alt(self) -> str:
        """Describe the static picture."""
        queries, keys = self.visible()
        return (
            f"A map of {len(queries)} queries in rows and {len(keys)} keys in columns; "
            "the darker a cell, the larger the weight. The row of "
            f"“{self.tokens[self._query_index()]}” is framed, and its largest weights "
            "stand beside the map as bars."
        )

    def table(self) -> str:
        """List the weights of the map."""
        queries, keys = self.visible()
        weights, _ = self.rows(self.head)
        header = ("query", *(self.key_tokens[j] for j in keys))
        rows = [
            (self.tokens[i], *(number(x) for x in row))
            for i, row in zip(queries, weights, strict=True)
        ]
        return table("Weights: queries in rows, keys in columns", header, rows)

    def picture(self) -> str:
        """Draw the map and the bars of the selected row."""
        queries, keys = self.visible()
        size = min(26, 420 // len(keys))
        right = 120 + size * len(keys)
        y = _TOP + size * self.query()
        frame = rect(110, y, right - 120, size, "none", ACCENT)
        parts = self._labels(queries, keys, size)
        parts += _cells(self.rows(self.head)[0], size)
        parts += [frame, *self._bars(right + 20)]
        tall = max(size * len(queries), 22 * min(BARS, len(keys)))
        return svg(760, _TOP + tall + 20, parts)

    def _labels(self, queries, keys, size: int) -> list[str]:
        every = math.ceil(12 / size)
        style = {"size": 11, "fill": MUTE}
        parts = []
        for r in range(0, len(queries), every):
            y, text = _TOP + size * r + size // 2 + 4, short(self.tokens[queries[r]])
            parts.append(words(104, y, text, **style, anchor="end"))
        for c in range(0, len(keys), every):
            x, text = 110 + size * c + size // 2 + 4, short(self.key_tokens[keys[c]])
            parts.append(f'<g transform="translate({x} {_TOP - 6}) rotate(-60)">')
            parts.append(words(0, 0, text, **style) + "</g>")
        parts.append(words(104, _TOP - 6, "query ↓ key →", **style, anchor="end"))
        return parts

    def _bars(self, x: int) -> list[str]:
        parts = []
        for i, (key, weight, _) in enumerate(self.ranking()[:BARS]):
            y, width = _TOP + 22 * i, half_up(100 * weight)
            parts.append(words(x + 72, y + 15, short(key), size=12, anchor="end"))
            parts.append(rect(x + 78, y + 4, width, 14, ACCENT))
            parts.append(words(x + 84 + width, y + 15, number(weight), size=12))
        return parts


def _check_shape(shape: tuple[int, ...], code: str) -> None:
    if len(shape) < 2:
        raise ValueError(
            f"weights has shape {shape}: the query axis is missing; expected "
            "(n_q, n_k), (head, n_q, n_k) or (layer, head, n_q, n_k)"
        )
    if len(shape) > 4:
        raise ValueError(
            f"weights has shape {shape}: an axis too many for (layer, head, n_q, n_k); "
            f"choose one sentence of the batch, such as {code}[:, 0]"
        )
    axes = (
        ("layers", MAX_LAYERS, f"weights[:{MAX_LAYERS}]"),
        ("heads", MAX_HEADS, f"{code}[..., :{MAX_HEADS}, :, :]"),
        ("queries", MAX_TOKENS, f"{code}[..., :{MAX_TOKENS}, :]"),
        ("keys", MAX_TOKENS, f"{code}[..., :{MAX_TOKENS}]"),
    )
    for size, (name, limit, way_out) in zip(shape[::-1], axes[::-1], strict=False):
        if size == 0:
            raise ValueError(f"weights has shape {shape}; pass {name} to show, not 0")
        if size > limit:
            raise ValueError(
                f"weights has {size} {name}, more than {limit}; pass {way_out}"
            )
    if math.prod(shape) > MAX_BYTES:
        raise ValueError(
            f"weights has {math.prod(shape):,} entries, more than {MAX_BYTES:,}; "
            f"pass fewer layers, such as weights[:{MAX_BYTES // math.prod(shape[1:])}]"
        )


def _check_values(array: np.ndarray) -> None:
    wrong = array[~((array >= 0) & (array <= 1.001))]
    if wrong.size:
        way_out = "pass what comes after the softmax, not the scores"
        if np.isnan(wrong[0]):
            way_out = "put zeros where a query may look at nobody"
        raise ValueError(
            f"weights must lie between 0 and 1, found {wrong[0]:.4g}; {way_out}"
        )


def _check_sums(sums: np.ndarray) -> None:
    if (sums > 1.01).any():  # a softmax in half precision may be off by less
        raise ValueError(
            f"weights has a row with sum {sums.max():.3g}, more than 1; pass what "
            "comes after a softmax over the keys, and before dropout"
        )


def _cells(weights: np.ndarray, size: int) -> list[str]:
    paths = {}
    for (r, c), weight in np.ndenumerate(weights):
        colour = css(ramp(float(weight)))
        paths.setdefault(colour, []).append(f"M{c} {r}h1v1h-1z")
    drawn = [f'<path fill="{fill}" d="{"".join(d)}"/>' for fill, d in paths.items()]
    place = f"translate(110 {_TOP}) scale({size})"
    return [f'<g transform="{place}" shape-rendering="crispEdges">', *drawn, "</g>"]
