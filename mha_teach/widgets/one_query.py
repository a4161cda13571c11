"""OneQuery answers: how does one row of weights arise."""

from collections.abc import Sequence
from typing import NamedTuple, SupportsFloat

import numpy as np

from mha_teach.widgets._choices import tenths
from mha_teach.widgets._host import Explorer, table
from mha_teach.widgets._inputs import as_array, as_labels
from mha_teach.widgets._plane import SIDE, Point, plane
from mha_teach.widgets._svg import (
    ACCENT,
    MUTE,
    half_up,
    listed,
    number,
    printable,
    rect,
    short,
    svg,
    words,
)

REACH, MIN_KEYS, MAX_KEYS = 3, 2, 8
STEPS = [n / 10 for n in range(-10 * REACH, 10 * REACH + 1)]
TEMPERATURES = [0.1, 0.2, 0.5, 1, 2, 5, 10]
TIE = 1e-9
HARD, FLAT = 0.99, 0.05

HEADER = ("name", "key", "value", "score", "weight", "distance")
LEGEND = (
    "Arrow: key. Disc: value; its area is the weight. Ring: query. Diamond: output.",
    "Dashed circle: through the nearest key. Dashed line: through the key that reaches "
    "furthest along the query.",
)
SMALL = {"size": 11, "fill": MUTE}


class Look(NamedTuple):
    """What the query sees: three of shape (key,), and the output, (2,)."""

    scores: np.ndarray
    weights: np.ndarray
    distances: np.ndarray
    output: np.ndarray


class OneQuery(Explorer):
    r"""Move a query among keys in a plane; scores, weights and output follow.

    The weights are :math:`softmax(k q / T)` with temperature T, and the output is the
    mean of the values with these weights. At :math:`T = \sqrt{2}` it is the attention
    of one head of width 2; T = 1 leaves the dot products as they are.

    Parameters
    ----------
    keys : array of shape (n_k, 2)
        2 to 8 keys with coordinates from -3 to 3.
    values : array of shape (n_k, 2), optional
        What each key gives, in the same plane; ``keys`` by default.
    labels : sequence of str, optional
        The names of the keys; A, B, C, … by default.
    x, y : float
        Where the query starts, from -3 to 3 in steps of 0.1.
    temperature : float
        0.1, 0.2, 0.5, 1, 2, 5 or 10.
    title : str
        The question above the picture.

    Raises
    ------
    ValueError
        If keys or values have another shape, are too many or outside the plane, labels
        and keys differ in number, or a choice does not exist.
    TypeError
        If keys, values or a choice are no numbers, or a label is no str.

    Notes
    -----
    As the last line of a cell it displays without a kernel; ``live()`` returns it as a
    widget whose choices Python reads, sets and observes.
    """

    parts = (
        "kit.css",
        "controls.css",
        "one_query.css",
        "kit.mjs",
        "view.mjs",
        "controls.mjs",
        "formulas.mjs",
        "one_query_model.mjs",
        "one_query_draw.mjs",
        "one_query.mjs",
    )
    choices = {"x": tenths, "y": tenths, "temperature": tenths}

    def __init__(
        self,
        keys,
        values=None,
        *,
        labels: Sequence[str] | None = None,
        x: SupportsFloat = 1.0,
        y: SupportsFloat = 0.5,
        temperature: SupportsFloat = 1.0,
        title: str = "How does one row of weights arise?",
    ):
        self.keys = _points("keys", keys)
        n_k = len(self.keys)
        if not MIN_KEYS <= n_k <= MAX_KEYS:
            cut = f", such as keys[:{MAX_KEYS}]" if n_k > MAX_KEYS else ""
            raise ValueError(
                f"keys has {n_k} rows; pass {MIN_KEYS} to {MAX_KEYS} keys{cut}"
            )
        self.values = self.keys if values is None else _points("values", values)
        if len(self.values) != n_k:
            raise ValueError(
                f"values has {len(self.values)} rows, but keys has {n_k}; "
                "pass one value for each key"
            )
        self.labels = list("ABCDEFGH"[:n_k])
        if labels is not None:
            self.labels = as_labels("labels", labels, f"keys has {n_k} rows", n_k)
        self.title = printable(title)
        self.x, self.y, self.temperature = x, y, temperature
        self.check()

    def live(self):
        """Return the explorer as a widget with ``x``, ``y`` and ``temperature``."""
        from mha_teach.widgets.live import LiveOneQuery

        return LiveOneQuery(self)

    def data(self) -> dict:
        """Return keys, values and labels, and the temperatures to choose from."""
        return {
            "plane": {
                "title": self.title,
                "labels": self.labels,
                "keys": self.keys.tolist(),
                "values": self.values.tolist(),
                "temperatures": TEMPERATURES,
            }
        }

    def allowed(self) -> dict:
        """Return the values that each choice may take."""
        return {"x": STEPS, "y": STEPS, "temperature": TEMPERATURES}

    def look(self) -> Look:
        """Return scores, weights, distances and output of the query."""
        query = np.array([self.x, self.y])
        scores = (self.keys * query).sum(-1) / self.temperature
        powers = np.exp(scores - scores.max())
        weights = powers / sum(powers)  # term by term, as the live view adds
        distances = np.sqrt(((self.keys - query) ** 2).sum(-1))
        output = sum(w * value for w, value in zip(weights, self.values, strict=True))
        return Look(scores, weights, distances, output)

    def sentence(self) -> str:
        """Say which key gets the most and why, and whether it is the nearest."""
        look = self.look()
        if np.ptp(look.scores) < TIE:
            why = "All scores are equal" if self.x or self.y else "The query is 0"
            weight = number(look.weights[0])
            return (
                f"{why}, so each of {len(self.keys)} keys gets the same weight, "
                f"{weight}. The output is the plain mean of the values."
            )
        winners = _places(look.scores.max() - look.scores)
        parts = self._most(look, winners), self._nearest(look, winners)
        return " ".join([*parts, *self._spread(look.weights)])

    def _most(self, look: Look, winners: list[int]) -> str:
        one, far = len(winners) == 1, look.scores.max() > TIE
        gets = "gets the most, {}" if one else "get the most, {} each"
        why = {
            (True, True): "it reaches furthest in the query's direction",
            (True, False): "they reach equally far in the query's direction",
            (False, True): "no key points the query's way, and it points away least",
            (False, False): "no key points the query's way, and they point away least",
        }
        weight = number(look.weights[winners[0]])
        return f"{self._names(winners)} {gets.format(weight)}: {why[far, one]}."

    def _nearest(self, look: Look, winners: list[int]) -> str:
        nearest = _places(look.distances - look.distances.min())
        if len(winners) == 1 and winners[0] in nearest:
            return "It is also the nearest."
        weights = listed([number(look.weights[i]) for i in nearest])
        verb = "is" if len(nearest) == 1 else "are"
        return f"The nearest {verb} {self._names(nearest)}, with {weights}."

    def _spread(self, weights: np.ndarray) -> list[str]:
        hard, flat = weights.max() > HARD, np.ptp(weights) < FLAT
        if not (hard or flat):
            return []
        what = "the look-up is nearly hard" if hard else "the weights are nearly equal"
        cause = self.temperature < 1 if hard else self.temperature > 1
        if cause:
            return [f"At temperature {self.temperature:g} {what}."]
        return [f"{what[0].upper()}{what[1:]}."]

    def _names(self, places: list[int]) -> str:
        return listed([self.labels[i] for i in places])

    def alt(self) -> str:
        """Describe the static picture."""
        look = self.look()
        rows = "; ".join(
            f"{name}: score {number(score)}, weight {number(weight)}, "
            f"distance {number(distance)}"
            for name, score, weight, distance in zip(
                self.labels, *look[:3], strict=True
            )
        )
        return (
            f"A plane with {len(self.keys)} keys as arrows from the origin, the query "
            f"at {_point((self.x, self.y), 1)} and, inside the hull of the values, the "
            f"output at {_point(look.output)}. Beside it, key by key: {rows}."
        )

    def table(self) -> str:
        """List what becomes of each key."""
        look = self.look()
        lines = zip(self.labels, self.keys, self.values, *look[:3], strict=True)
        rows = [
            (label, _point(key), _point(value), *map(number, rest))
            for label, key, value, *rest in lines
        ]
        query, output = _point((self.x, self.y), 1), _point(look.output)
        caption = (
            f"Query {query}, temperature {self.temperature:g}: the output is {output}"
        )
        return table(caption, HEADER, rows)

    def picture(self) -> str:
        """Draw the plane and, beside it, one row for each key."""
        look = self.look()
        drawn = plane(
            self.keys.tolist(),
            self.values.tolist(),
            self.labels,
            (self.x, self.y),
            look.weights,
            look.output,
            look.distances.min(),
            _places(look.scores.max() - look.scores)[0],
        )
        parts = [f'<svg x="10" y="10" width="{SIDE}" height="{SIDE}">', *drawn]
        parts += ["</svg>", *self._rows(look)]
        parts += [words(24, 362 + 18 * i, x, **SMALL) for i, x in enumerate(LEGEND)]
        return svg(700, 392, parts)

    def _rows(self, look: Look) -> list[str]:
        parts = [
            words(370, 44, "key", **SMALL),
            words(505, 44, "score", **SMALL, anchor="end"),
            words(520, 44, "weight", **SMALL),
            words(688, 44, "distance", **SMALL, anchor="end"),
        ]
        most = _places(look.scores.max() - look.scores)
        lines = zip(self.labels, *look[:3], strict=True)
        for i, (label, score, weight, distance) in enumerate(lines):
            y, width = 72 + 28 * i, half_up(80 * weight)
            if i in most:
                parts.append(rect(360, y - 19, 332, 28, "#e3eefa"))
            parts += [
                words(370, y, short(label)),
                words(505, y, number(score), anchor="end"),
                rect(520, y - 12, width, 14, ACCENT),
                words(526 + width, y, number(weight)),
                words(688, y, number(distance), anchor="end"),
            ]
        y = 84 + 28 * len(self.labels)
        query = f"query {_point((self.x, self.y), 1)}, temperature {self.temperature:g}"
        output = f"output = Σ weight × value = {_point(look.output)}"
        return [*parts, words(370, y, query), words(370, y + 22, output)]


def _points(name: str, points) -> np.ndarray:
    expected = f"numbers from -{REACH} to {REACH} of shape (n_k, 2)"
    array = as_array(name, points, expected).astype(np.float64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(
            f"{name} has shape {array.shape}; pass points of a plane, shape (n_k, 2)"
        )
    outside = array[~(np.abs(array) <= REACH).all(-1)]
    if len(outside):
        raise ValueError(
            f"{name} holds {outside[0].tolist()}, which is outside the plane; "
            f"pass numbers from -{REACH} to {REACH}"
        )
    return array


def _places(gaps: np.ndarray) -> list[int]:
    return [i for i, gap in enumerate(gaps) if gap < TIE]


def _point(at: Point, digits: int = 2) -> str:
    return f"({number(at[0], digits)}, {number(at[1], digits)})"
