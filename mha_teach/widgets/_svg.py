"""Static pictures, and the words and colours that they share with ``kit.mjs``.

A saved picture is the same SVG, to the letter, whether Python or the live view draws
it: the tests compare both.
"""

import html
import math
import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

ACCENT, WARM, INK, MUTE = "#0b5cad", "#b3541e", "#1c2128", "#59616c"

# What XML, and so an SVG, may not hold: control characters and lone surrogates.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

_AT = (0, 0.08, 0.25, 0.5, 0.75, 1)
_RAMP = ("f4f7fb", "d6e4f3", "96bee4", "4a8ac8", "18569c", "062454")


def number(x: float, digits: int = 2) -> str:
    """Write 0.5 as "0.50" and -1 as "−1.00"; never "−0.00"."""
    # As JavaScript rounds: a half goes away from 0.
    text = str(Decimal(float(x)).quantize(Decimal(10) ** -digits, ROUND_HALF_UP))
    return text.replace("-", "" if float(text) == 0 else "−")


def percent(x: float) -> str:
    """Write a share; "100 %" means all and "0 %" none, nothing is rounded up to it."""
    if 0 < x < 0.01:
        return "under 1 %"
    return f"{100 if x >= 1 else min(99, half_up(100 * x))} %"


def half_up(x: float) -> int:
    """Round as the live view does: halves go up."""
    return math.floor(x + 0.5)


def ramp(weight: float) -> tuple[int, int, int]:
    """Return the colour of a weight on white paper: darker is more."""
    w = min(1, max(0, weight))
    i = max(1, next(i for i, at in enumerate(_AT) if w <= at))
    t = (w - _AT[i - 1]) / (_AT[i] - _AT[i - 1])
    low, high = (bytes.fromhex(_RAMP[j]) for j in (i - 1, i))
    return tuple(half_up(a + t * (b - a)) for a, b in zip(low, high, strict=True))


def css(rgb: Sequence[int]) -> str:
    """Return a colour as SVG and CSS write it."""
    return f"rgb({rgb[0]} {rgb[1]} {rgb[2]})"


def ink_on(rgb: Sequence[int]) -> str:
    """Return the ink, light or dark, that is readable on a colour."""
    linear = [
        c / 3294.6 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4
        for c in rgb
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.179 else "#ffffff"


def printable(text: object) -> str:
    """Put "�" for each character that no picture may hold."""
    return _UNPRINTABLE.sub("�", str(text))


def short(text: str) -> str:
    """Cut a text to 12 letters."""
    return text if len(text) <= 12 else f"{text[:11]}…"


def listed(items: Sequence[str]) -> str:
    """Write "a, b and c"."""
    *most, last = items
    return f"{', '.join(most)} and {last}" if most else last


def svg(width: int, height: int, parts: Sequence[str]) -> str:
    """Wrap parts into a picture on white paper."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif">'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
        f"{''.join(parts)}</svg>"
    )


def rect(x, y, width, height, fill: str, stroke: str = "none") -> str:
    """Draw a rectangle."""
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" '
        f'fill="{fill}" stroke="{stroke}"/>'
    )


def words(x, y, text, *, size=13, fill=INK, anchor="start") -> str:
    """Write one line of text."""
    text = html.escape(printable(text), quote=True)
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}" '
        f'text-anchor="{anchor}">{text}</text>'
    )
