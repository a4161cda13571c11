"""The plane of OneQuery; one_query_plane.mjs draws the same, to the letter."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from mha_teach.widgets._svg import ACCENT, INK, MUTE, WARM, half_up, short, words

Point = Sequence[float] | np.ndarray

SIDE, UNIT = 330, 50
ORIGIN = (0.0, 0.0)
LINE, PAPER = "#d9dee5", "#ffffff"
DASHES = 'stroke-dasharray="5 4"'


def plane(
    keys: Sequence[Point],
    values: Sequence[Point],
    labels: Sequence[str],
    query: Point,
    weights: np.ndarray,
    output: Point,
    radius: float,
    winner: int,
) -> list[str]:
    """Draw keys as arrows, values as discs whose area is the weight, and the rest.

    ``radius`` is the distance of the nearest key, ``winner`` the key that gets most.
    """
    apart = keys != values
    radii = [26 * math.sqrt(weight) for weight in weights]
    hull = f'fill="{MUTE}" fill-opacity="0.1" {_stroke(MUTE, 1)}'
    disc = f'fill="{ACCENT}" fill-opacity="0.25" {_stroke(ACCENT, 1)}'
    dot = f'fill="{MUTE}"'
    discs, names = list(zip(values, radii, strict=True)), list(map(short, labels))
    return [
        *_squares(),
        f'<path d="{_way(_hull(values))}z" {hull}/>',
        *_guides(query, keys[winner], radius),
        *(_circle(value, r, disc) for value, r in discs),
        *(_circle(value, 2.5, dot) for value in values if apart),
        *map(_arrow, keys),
        f'<path d="{_way([ORIGIN, query])}" {_stroke(WARM, 2)}/>',
        _diamond(output),
        _circle(query, 9, f'fill="none" {_stroke(WARM, 4)}'),
        *(
            _name(value, r, f"value {name}", MUTE)
            for (value, r), name in zip(discs, names, strict=True)
            if apart
        ),
        *(
            _name(key, 0 if apart else r, name, INK)
            for key, r, name in zip(keys, radii, names, strict=True)
        ),
    ]


def _squares() -> list[str]:
    low, long = _px(SIDE / 2 - 3 * UNIT), _px(6 * UNIT)
    places = [_px(SIDE / 2 + n * UNIT) for n in range(-3, 4)]
    lines = [f"M{at} {low}v{long}M{low} {at}h{long}" for at in places]
    return [
        f'<path d="{"".join(lines)}" {_stroke(LINE, 1)}/>',
        f'<path d="{lines[3]}" {_stroke(MUTE, 1)}/>',
        words(315, 179, 3, size=11, fill=MUTE, anchor="middle"),
        words(170, 19, 3, size=11, fill=MUTE),
    ]


def _guides(query: Point, winner: Point, radius: float) -> list[str]:
    """Draw the circle that holds no key, and the line of the winner's score."""
    x, y = query
    length = math.sqrt(x * x + y * y)
    empty = f'fill="none" {_stroke(WARM, 1)} {DASHES}'
    parts = [_circle(query, UNIT * radius, empty)]
    if length > 0:
        u, v = -9 * y / length, 9 * x / length
        ends = [(winner[0] - u, winner[1] - v), (winner[0] + u, winner[1] + v)]
        parts.append(f'<path d="{_way(ends)}" {_stroke(ACCENT, 1)} {DASHES}/>')
    return parts


def _arrow(key: Point) -> str:
    length = math.sqrt(key[0] * key[0] + key[1] * key[1])
    if length < 0.25:
        return _circle(key, 4, f'fill="{ACCENT}"')
    u, v = key[0] / length, key[1] / length
    back = (key[0] - 0.18 * u, key[1] - 0.18 * v)
    sides = [(back[0] - s * v, back[1] + s * u) for s in (0.08, -0.08)]
    d = f"{_way([ORIGIN, back])}{_way([key, *sides])}z"
    return f'<path d="{d}" fill="{ACCENT}" {_stroke(ACCENT, 2)}/>'


def _name(at: Point, radius, text: str, fill: str) -> str:
    """Write a name beyond a disc, seen from the origin, and inside the picture."""
    length = math.sqrt(at[0] * at[0] + at[1] * at[1])
    u, v = (at[0] / length, at[1] / length) if length > 0 else (0.7, 0.7)
    x, y = _place(at)
    half = sum(4 if ord(letter) < 0x2E80 else 7 for letter in text)
    gap = radius + 11
    x = min(SIDE - half, max(half, x + u * (gap + half - 4)))
    y = min(SIDE - 4, max(12, y - v * gap + 4))
    halo = f'stroke="{PAPER}" stroke-width="3" paint-order="stroke"'
    return f"<g {halo}>{words(_px(x), _px(y), text, fill=fill, anchor='middle')}</g>"


def _diamond(at: Point) -> str:
    x, y = _place(at)
    d = f"M{_px(x)} {_px(y - 8)}l8 8l-8 8l-8 -8z"
    return f'<path d="{d}" fill="{INK}" {_stroke(PAPER, 2)}/>'


def _circle(at: Point, radius, style: str) -> str:
    x, y = _place(at)
    return f'<circle cx="{_px(x)}" cy="{_px(y)}" r="{_px(radius)}" {style}/>'


def _stroke(colour: str, width: int) -> str:
    return f'stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"'


def _way(points: Iterable[Point]) -> str:
    places = map(_place, points)
    return "M" + "L".join(f"{_px(x)} {_px(y)}" for x, y in places)


def _place(at: Point) -> tuple[float, float]:
    return SIDE / 2 + UNIT * at[0], SIDE / 2 - UNIT * at[1]


def _px(length) -> str:
    return f"{half_up(10.0 * length) / 10:g}"


def _hull(points: Sequence[Point]) -> list[Point]:
    """Return the corners of the convex hull, anticlockwise."""
    ordered = sorted(points)
    return _chain(ordered)[:-1] + _chain(ordered[::-1])[:-1]


def _chain(ordered: Sequence[Point]) -> list[Point]:
    """Walk along points, and keep those where the way turns left."""
    way = []
    for point in ordered:
        while len(way) > 1 and _turn(way[-2], way[-1], point) <= 0:
            way.pop()
        way.append(point)
    return way


def _turn(a: Point, b: Point, c: Point) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
