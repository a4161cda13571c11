"""Figures: arrays in, a Matplotlib figure out, and one way to show it.

``show`` sends a figure as ``<figure><img alt="…">`` with the same sentence as plain
text, so that a screen reader, a notebook viewer and the printed page all get it.
"""

import base64
import html
import io
import warnings
from collections.abc import Iterable, Sequence

import matplotlib as mpl
import numpy as np
from IPython.display import display
from matplotlib import font_manager
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

MAX_SVG_BYTES = 100_000
INK, QUIET = "#1c2733", "#5b6775"
# From paper to ink through one hue: it prints, and reads without colour vision.
WEIGHT_COLOURS = LinearSegmentedColormap.from_list(
    "weights", ["#f4f6f9", "#9dbbe0", "#3f74b5", "#0b2545"]
)

# Tried in this order, glyph by glyph; the later ones hold Chinese.
FONTS = (
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Microsoft YaHei",
    "PingFang SC",
    "Hiragino Sans GB",
    "WenQuanYi Micro Hei",
    "Arial Unicode MS",
)


def _style() -> dict[str, object]:
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return {
        "font.family": [name for name in FONTS if name in installed],
        "font.size": 9,
        "text.color": INK,
        "axes.labelcolor": QUIET,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "svg.hashsalt": "mha_teach",
    }


in_house_style = mpl.rc_context(_style())


def show(fig: Figure, alt: str) -> None:
    """Display a figure with a sentence that says what it shows.

    Raises
    ------
    ValueError
        If ``alt`` is empty, or no installed font has a character of the figure.
    """
    if not alt.strip():
        raise ValueError("alt is empty; say in one sentence what the figure shows")
    data = _rendered(fig)
    image = f'<img src="{data}" alt="{html.escape(alt)}" style="max-width:100%">'
    bundle = {"text/html": f"<figure>{image}</figure>", "text/plain": alt}
    display(bundle, raw=True)


@in_house_style
def attention_maps(
    weights: Iterable[ArrayLike],
    tokens: Sequence[str],
    titles: Sequence[str],
) -> Figure:
    """Draw one square map per entry of ``weights``: rows are queries, columns keys.

    Parameters
    ----------
    weights
        Maps (n, n), arrays or tensors, with entries between 0 and 1; darker is more.
    tokens
        The n tokens, for both axes.
    titles
        One per map.

    Raises
    ------
    ValueError
        If there is no map, a map does not fit the tokens, or the titles the maps.
    """
    maps = [_as_array(each) for each in weights]
    if not maps:
        raise ValueError("weights is empty; pass at least one map")
    n = len(tokens)
    for each in maps:
        if each.shape != (n, n):
            raise ValueError(
                f"a map has shape {each.shape}, but there are {n} tokens; "
                f"pass maps of shape ({n}, {n})"
            )
    if len(titles) != len(maps):
        raise ValueError(f"{len(maps)} maps need as many titles, got {len(titles)}")
    fig = Figure(figsize=(2.8 * len(maps) + 0.9, 3.9), layout="constrained")
    axes = fig.subplots(1, len(maps), sharey=True, squeeze=False)[0]
    for ax, each, title in zip(axes, maps, titles, strict=True):
        image = ax.imshow(each, cmap=WEIGHT_COLOURS, vmin=0, vmax=1)
        ax.set_title(title, fontsize=10, color=INK)
        ax.set_xlabel("key")
        # A token such as $x$ is text, not a formula.
        ax.set_xticks(range(n), tokens, rotation=90, parse_math=False)
        ax.set_yticks(range(n), tokens, parse_math=False)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    axes[0].set_ylabel("query")
    bar = fig.colorbar(image, ax=list(axes), ticks=[0, 0.5, 1], shrink=0.7, pad=0.02)
    bar.set_label("weight")
    bar.outline.set_visible(False)
    return fig


def _as_array(each: ArrayLike) -> np.ndarray:
    """Take a tensor, known by its ``detach``, out of PyTorch, which is not imported."""
    return np.asarray(each.detach().cpu() if hasattr(each, "detach") else each)


@in_house_style
def _rendered(fig: Figure) -> str:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Glyph .* missing")
        try:
            svg = _saved(fig, format="svg", metadata={"Date": None})
        except UserWarning as missing:
            raise ValueError(
                f"{missing}; install a font that has it, e.g. Noto Sans CJK"
            ) from None
        if len(svg) <= MAX_SVG_BYTES:
            return "data:image/svg+xml;base64," + base64.b64encode(svg).decode()
        png = _saved(fig, format="png", dpi=200, metadata={"Software": None})
        return "data:image/png;base64," + base64.b64encode(png).decode()


def _saved(fig: Figure, **options) -> bytes:
    buffer = io.BytesIO()
    fig.savefig(buffer, **options)
    return buffer.getvalue()
