"""Figures: arrays in, a Matplotlib figure out, and one way to show it.

``show`` sends a figure as ``<figure><img alt="…">`` with the same sentence as plain
text, so that a screen reader, a notebook viewer and the printed page all get it.
"""

import base64
import html
import io
import reprlib
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from IPython.display import display
from matplotlib import font_manager
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator
from numpy.typing import ArrayLike

MAX_SVG_BYTES = 100_000
INK, QUIET = "#1c2733", "#5b6775"
# From paper to ink through one hue: it prints, and reads without colour vision.
WEIGHT_COLOURS = LinearSegmentedColormap.from_list(
    "weights", ["#f4f6f9", "#9dbbe0", "#3f74b5", "#0b2545"]
)

SIGNED_COLOURS = "PuOr"  # orange below 0, purple above, pale at 0
MARKED_COLOUR = "#f3c6a5"

# Told apart by colour, without colour vision too, and in print by mark and dash.
STYLES = (
    {"color": "#b3541e", "marker": "s", "linestyle": "--"},
    {"color": "#0b5cad", "marker": "o", "linestyle": "-"},
    {"color": "#59616c", "marker": "^", "linestyle": ":"},
)

# One colour a token, under ink: told apart without colour vision, darker one by one.
TOKEN_COLOURS = ("#fbf3d9", "#f2b77c", "#74b5ad", "#a48fc7")

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
    display({"text/html": as_html(fig, alt), "text/plain": alt}, raw=True)


def as_html(fig: Figure, alt: str) -> str:
    """Return what ``show`` displays, for a place that takes HTML.

    Raises
    ------
    ValueError
        As ``show`` does.
    """
    if not alt.strip():
        raise ValueError("alt is empty; say in one sentence what the figure shows")
    data = _rendered(fig)
    image = f'<img src="{data}" alt="{html.escape(alt)}" style="max-width:100%">'
    return f"<figure>{image}</figure>"


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
    TypeError
        If a map does not hold numbers.
    ValueError
        If there is no map, a map does not fit the tokens, or the titles the maps, or
        an entry is not between 0 and 1.
    """
    maps = [_as_array("weights", each) for each in weights]
    if not maps:
        raise ValueError("weights is empty; pass at least one map")
    n = len(tokens)
    for each in maps:
        if each.shape != (n, n):
            raise ValueError(
                f"a map has shape {each.shape}, but there are {n} tokens; "
                f"pass maps of shape ({n}, {n})"
            )
        _require_shares("weights", each)
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


class Panel(NamedTuple):
    """One quantity to draw: its name, a line of numbers per label, and its scale."""

    title: str
    lines: Mapping[str, ArrayLike]
    log: bool = False


@in_house_style
def curves(
    x: Sequence[int | float],
    panels: Sequence[Panel],
    xlabel: str,
    *,
    log_x: bool = True,
) -> Figure:
    """Draw one panel per quantity over x; a label keeps its style.

    On a logarithmic x every other one has a tick; on a linear x the panels share both
    axes. Linear y begin at 0. What is nan is left out.

    Raises
    ------
    ValueError
        If there is no panel, or there are more labels than styles.
    """
    if not panels:
        raise ValueError("panels is empty; pass at least one")
    styles = _styles([label for panel in panels for label in panel.lines])
    fig = Figure(figsize=(2.9 * len(panels) + 0.2, 2.9), layout="constrained")
    shared = {"sharex": not log_x, "sharey": not log_x}
    axes = fig.subplots(1, len(panels), squeeze=False, **shared)[0]
    for ax, panel in zip(axes, panels, strict=True):
        for label, line in panel.lines.items():
            numbers = _as_array(label, line)
            ax.plot(x, numbers, **styles[label], label=label, markersize=4.5)
        ax.set_title(panel.title, fontsize=10, color=INK)
        ax.set_xlabel(xlabel)
        if log_x:
            ax.set_xscale("log", base=2)
            ax.set_xticks(x[::2], [f"{value:g}" for value in x[::2]])
        if panel.log:
            ax.set_yscale("log")
            ax.yaxis.set_major_formatter("{x:g}")
        _quiet(ax)
    for ax, panel in zip(axes, panels, strict=True):  # once all lines are drawn
        if not panel.log:
            ax.set_ylim(bottom=0)
    handles = {
        label: line
        for ax in axes
        for line, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    _legend_above(fig, handles)
    return fig


@in_house_style
def points(
    groups: Mapping[str, tuple[ArrayLike, ArrayLike]], xlabel: str, ylabel: str
) -> Figure:
    """Scatter groups of (x, y) on logarithmic axes of one scale.

    Lines show where y = x, x = 1 and y = 1.

    Raises
    ------
    ValueError
        If there is no group, or there are more groups than styles.
    """
    if not groups:
        raise ValueError("groups is empty; pass at least one")
    styles = _styles(groups)
    fig = Figure(figsize=(5.2, 4.6), layout="constrained")
    ax = fig.subplots()
    for label, (x, y) in groups.items():
        style = styles[label] | {"linestyle": "none"}
        places = _as_array(label, x), _as_array(label, y)
        ax.plot(*places, **style, label=label, alpha=0.75, ms=4.5)
    ax.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel, aspect="equal")
    ax.axline((1, 1), (2, 2), color=QUIET, linewidth=0.8, zorder=0)
    for line in (ax.axhline, ax.axvline):
        line(1, color=QUIET, linewidth=1, linestyle="--", zorder=1.6)  # on the grid
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
    _quiet(ax)
    ax.legend(frameon=False)
    return fig


@in_house_style
def runs(
    panels: Mapping[str, Mapping[str, Mapping[str, ArrayLike]]],
    levels: Mapping[str, float],
    ylabel: str,
) -> Figure:
    """Draw every run as a dot; the runs of one setting stand side by side, in order.

    Parameters
    ----------
    panels
        Maps the title of a panel to its labels, a label to its settings, and a setting
        to one share between 0 and 1 per run. A label keeps its style.
    levels
        Maps the name of a horizontal line to its height.
    ylabel
        What the shares are shares of.

    Raises
    ------
    ValueError
        If there is no panel, there are more labels than styles, or a share is not
        between 0 and 1.
    """
    if not panels:
        raise ValueError("panels is empty; pass at least one")
    styles = _styles(label for panel in panels.values() for label in panel)
    settings = [
        list(dict.fromkeys(name for group in panel.values() for name in group))
        for panel in panels.values()
    ]
    widths = [len(names) for names in settings]
    fig = Figure(figsize=(0.55 * sum(widths) + 1.2, 3.4), layout="constrained")
    axes = fig.subplots(1, len(panels), sharey=True, squeeze=False, width_ratios=widths)
    handles = {}
    for ax, (title, panel), names in zip(
        axes[0], panels.items(), settings, strict=True
    ):
        for place, (label, group) in enumerate(panel.items()):
            style = styles[label] | {"linestyle": "none", "ms": 4, "alpha": 0.85}
            for setting, values in group.items():
                dots = np.sort(_as_array(setting, values))
                _require_shares(setting, dots)
                middle = names.index(setting) + 0.36 * (place - (len(panel) - 1) / 2)
                x = middle + np.linspace(-0.12, 0.12, len(dots))
                handles[label] = ax.plot(x, dots, **style)[0]
        ax.set_title(title, fontsize=10, color=INK)
        ax.set_xticks(range(len(names)), [name.replace(" ", "\n") for name in names])
        ax.set(xlim=(-0.6, len(names) - 0.4), ylim=(-0.03, 1.05))
        _quiet(ax)
        ax.grid(visible=False, axis="x")
        for height in levels.values():
            ax.axhline(height, color=QUIET, linewidth=0.8, linestyle="--", zorder=0)
    for name, height in levels.items():
        axes[0, 0].text(0.6, height + 0.01, name, fontsize=7.5, color=QUIET)
    axes[0, 0].set_ylabel(ylabel)
    _legend_above(fig, handles)
    return fig


@in_house_style
def shares(
    weights: ArrayLike,
    keys: Sequence[str],
    queries: Sequence[str],
    *,
    marked: Collection[int] = (),
) -> Figure:
    """Draw each query's weights as one bar, cut into a piece for each key.

    A piece is as wide as its weight, and darker the more it is; it bears the name of
    its key where there is room.

    Parameters
    ----------
    weights
        (n_q, n_k), an array or a tensor, with entries between 0 and 1.
    keys
        The n_k names, in the order of the pieces.
    queries
        The n_q names, one per bar.
    marked
        Keys, counted from 0, whose pieces are hatched in orange.

    Raises
    ------
    TypeError
        If the weights are no numbers.
    ValueError
        If the weights do not fit the names, or one of them, or the sum of a row, is
        not between 0 and 1.
    """
    rows = _as_array("weights", weights)
    if rows.shape != (len(queries), len(keys)):
        raise ValueError(
            f"weights has shape {rows.shape}, but there are {len(queries)} queries "
            f"and {len(keys)} keys; pass shape ({len(queries)}, {len(keys)})"
        )
    _require_shares("weights", rows)
    _require_shares("the sum of a row of weights", rows.sum(axis=1))
    fig = Figure(figsize=(6.6, 0.42 * len(queries) + 0.7), layout="constrained")
    ax = fig.subplots()
    for y, row in enumerate(rows):
        pieces = zip(keys, row, row.cumsum(), strict=True)
        for number, (key, weight, end) in enumerate(pieces):
            look = {"color": WEIGHT_COLOURS(0.12 + 0.4 * weight)}  # below ink
            if number in marked:
                look = {"color": MARKED_COLOUR, "hatch": "////"}
            ax.barh(y, weight, 0.76, end - weight, edgecolor="white", **look)
            if weight > 0.012 * (len(key) + 1):
                at, middle = (end - weight / 2, y), {"ha": "center", "va": "center"}
                ax.annotate(key, at, fontsize=8, parse_math=False, **middle)
    ax.set_yticks(range(len(queries)), queries, parse_math=False)
    ax.invert_yaxis()
    ax.set(xlim=(0, 1), xlabel="weight")
    ax.set_xticks([0, 0.5, 1], ["0", "½", "1"])
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_color(QUIET)
    return fig


def _styles(labels: Iterable[str]) -> dict[str, dict[str, str]]:
    distinct = list(dict.fromkeys(labels))
    if len(distinct) > len(STYLES):
        raise ValueError(
            f"{len(distinct)} labels, but only {len(STYLES)} styles that stay apart; "
            "draw fewer"
        )
    return dict(zip(distinct, STYLES, strict=False))


def _legend_above(fig: Figure, handles: Mapping[str, Artist]) -> None:
    """Put the labels in as many columns as fit, and make room for their lines."""
    for columns in (3, 2, 1):
        place = {"loc": "outside upper center", "ncols": columns}
        legend = fig.legend(handles.values(), handles, **place, frameon=False)
        if columns == 1 or legend.get_window_extent().width <= fig.bbox.width:
            break
        legend.remove()
    further_lines = (len(handles) - 1) // columns
    fig.set_figheight(fig.get_figheight() + 0.2 * further_lines)


def _quiet(ax: Axes) -> None:
    """Leave the data as the loudest thing in a plot."""
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[:].set_color(QUIET)
    ax.grid(color="#dde2e8", linewidth=0.6)
    ax.set_axisbelow(True)


@in_house_style
def tables(
    lines: Mapping[str, Sequence[ArrayLike]],
    titles: Sequence[str],
    rows: Sequence[str],
    columns: Sequence[str] = (),
) -> Figure:
    """Draw small tables: one column of them per title, one line per quantity.

    A line has one scale: from 0 up if no number of it is negative, else as far below 0
    (orange) as above (purple).

    Parameters
    ----------
    lines
        Maps the name of a quantity to one table per title, each of n rows.
    titles
        One per column.
    rows
        Names of the n rows, written beside the first column.
    columns
        Names written below every table that has no more columns than there are names.

    Raises
    ------
    ValueError
        If there is nothing to draw, a line does not fit the titles, or a table the
        rows, or a number is nan or infinite.
    """
    if not lines or not titles:
        raise ValueError("there is no table; pass at least one line and one title")
    drawn = {n: [_finite(n, each) for each in line] for n, line in lines.items()}
    for name, line in drawn.items():
        if len(line) != len(titles):
            raise ValueError(f"{name}: {len(line)} tables for {len(titles)} titles")
        for each in line:
            if each.ndim != 2 or len(each) != len(rows):
                raise ValueError(
                    f"{name}: a table has shape {each.shape}, but there are "
                    f"{len(rows)} names of rows; pass tables ({len(rows)}, width)"
                )
    labelled = sum(line[0].shape[1] <= len(columns) for line in drawn.values())
    size = (2.1 * len(titles) + 1.4, 2.1 * len(drawn) + 0.5 * labelled)
    fig = Figure(figsize=size, layout="constrained")
    grid = fig.subplots(len(drawn), len(titles), squeeze=False)
    small = {"fontsize": 6.5, "parse_math": False}
    for axes, (name, line) in zip(grid, drawn.items(), strict=True):
        top = max(np.abs(each).max() for each in line)
        signed = min(each.min() for each in line) < 0
        cmap, bottom = (SIGNED_COLOURS, -top) if signed else (WEIGHT_COLOURS, 0)
        for ax, each in zip(axes, line, strict=True):
            image = ax.imshow(each, cmap=cmap, vmin=bottom, vmax=top, aspect="auto")
            ax.set(xticks=[], yticks=[], frame_on=False)
            if (width := each.shape[1]) <= len(columns):
                ax.set_xticks(range(width), columns[:width], **small, rotation=90)
            ax.tick_params(length=0)
        axes[0].set_yticks(range(len(rows)), rows, **small)
        ticks = sorted({bottom, 0, top})
        bar = fig.colorbar(
            image, ax=list(axes), ticks=ticks, format="{x:.2g}", shrink=0.8
        )
        bar.set_label(name)
        bar.outline.set_visible(False)
    for ax, title in zip(grid[0], titles, strict=True):
        ax.set_title(title, fontsize=10, color=INK)
    return fig


@in_house_style
def cells(
    tensors: Mapping[str, ArrayLike], width: int, follow: int | None = None
) -> Figure:
    """Draw tensors of numbers cell by cell, in colours that say whose each number is.

    Number 0 to ``width`` - 1 belong to token 0, the next ``width`` to token 1, and so
    on: give ``torch.arange(n * width).view(n, width)`` and what becomes of it.

    Parameters
    ----------
    tensors
        Maps a title to whole numbers (rows, width) or (block, rows, width). Blocks
        stand one below the other, each beside its index; the shape stands below the
        title.
    width
        How many numbers a token has.
    follow
        A number to frame wherever it stands.

    Raises
    ------
    ValueError
        If there is no tensor, one has another number of axes, or there are more tokens
        than colours.
    """
    if not tensors:
        raise ValueError("tensors is empty; pass at least one")
    drawn = {title: _finite(title, each) for title, each in tensors.items()}
    for title, each in drawn.items():
        if each.ndim not in (2, 3):
            raise ValueError(
                f"{title}: shape {each.shape}; pass (rows, width) or (block, rows, "
                "width)"
            )
    tokens = 1 + max(int(each.max()) // width for each in drawn.values())
    if tokens > len(TOKEN_COLOURS):
        raise ValueError(
            f"{tokens} tokens, but only {len(TOKEN_COLOURS)} colours that stay apart; "
            "draw fewer"
        )
    fig = Figure(layout="constrained")
    ax = fig.subplots()
    left = bottom = 0.0
    for title, each in drawn.items():
        heading = f"{title}\n{each.shape}"
        ax.text(left + each.shape[-1] / 2, -0.5, heading, ha="center", fontsize=10)
        bottom = max(bottom, _draw_blocks(ax, left, each, width, follow))
        left += each.shape[-1] + 2.4
    ax.set(xlim=(-1.2, left - 2.2), ylim=(bottom + 0.1, -2.6), aspect="equal")
    ax.set_axis_off()
    fig.set_size_inches(0.26 * (left - 1), 0.26 * (bottom + 2.7))
    return fig


def _draw_blocks(
    ax: Axes, left: float, tensor: np.ndarray, width: int, follow: int | None
) -> float:
    """Draw blocks one below the other, and return where the last one ends."""
    colours, top = ListedColormap(TOKEN_COLOURS), 0.0
    for index, block in enumerate(tensor if tensor.ndim == 3 else tensor[None]):
        rows, columns = block.shape
        limits = {"vmin": 0, "vmax": len(TOKEN_COLOURS) - 1}
        extent = (left, left + columns, top + rows, top)
        ax.imshow(block // width, cmap=colours, extent=extent, **limits)
        ax.vlines(left + np.arange(1, columns), top, top + rows, "white", lw=0.8)
        ax.hlines(top + np.arange(1, rows), left, left + columns, "white", lw=0.8)
        if tensor.ndim == 3:
            beside = {"ha": "right", "va": "center", "fontsize": 8, "color": QUIET}
            ax.text(left - 0.25, top + rows / 2, f"[{index}]", **beside)
        for (row, column), number in np.ndenumerate(block):
            x, y = left + column, top + row
            middle = {"ha": "center", "va": "center_baseline", "fontsize": 7.5}
            ax.text(x + 0.5, y + 0.5, f"{number:02}", **middle)
            if number == follow:
                frame = {"fill": False, "edgecolor": INK, "linewidth": 2, "zorder": 3}
                ax.add_patch(Rectangle((x, y), 1, 1, **frame))
        top += rows + 0.6
    return top - 0.6


@in_house_style
def marks(
    groups: Mapping[str, Mapping[str, Sequence[bool]]], columns: Sequence[str]
) -> Figure:
    """Draw a table of yes and no, in groups of rows: a dark cell is yes.

    Below each column stands how many of its cells are dark.

    Parameters
    ----------
    groups
        Maps the title of a group to its rows, and the name of a row to one answer per
        column.
    columns
        Names, written above.

    Raises
    ------
    ValueError
        If there is no row, or the answers of a row do not fit the columns.
    """
    rows = [row for group in groups.values() for row in group.items()]
    if not rows:
        raise ValueError("there is no row; pass at least one group with a row")
    for name, answers in rows:
        if len(answers) != len(columns):
            raise ValueError(f"{name}: {len(answers)} answers for {len(columns)} names")
    names = [*groups, *(name for name, _ in rows)]
    width, height = len(columns), len(names) + 1
    beside, above = (0.068 * max(map(len, each)) + 0.2 for each in (names, columns))
    fig = Figure(figsize=(0.2 * width + beside, 0.2 * height + above))
    across, down = fig.get_size_inches()
    ax = fig.add_axes((beside / across, 0, 1 - beside / across, 1 - above / down))
    dark = ListedColormap([WEIGHT_COLOURS(0.0), STYLES[1]["color"]])
    labels, top = [], 0
    for title, group in groups.items():
        labels += [title, *group]
        extent = (0, width, top + 1 + len(group), top + 1)
        table = np.array(list(group.values()), dtype=float)
        ax.imshow(table, cmap=dark, vmin=0, vmax=1, extent=extent, aspect="auto")
        ax.hlines(np.arange(top + 1, extent[2] + 1), 0, width, "white", linewidth=1.5)
        top = extent[2]
    ax.vlines(np.arange(width + 1), 0, top, "white", linewidth=1.5)
    small = {"fontsize": 8, "parse_math": False}
    ax.set_yticks(np.arange(len(labels)) + 0.5, labels, **small)
    for label in ax.get_yticklabels():
        if label.get_text() in groups:
            label.set(color=QUIET, style="italic")
    ax.xaxis.tick_top()
    ax.set_xticks(np.arange(width) + 0.5, columns, **small, rotation=90)
    ax.tick_params(length=0)
    for column, count in enumerate(np.sum([answers for _, answers in rows], axis=0)):
        ax.text(column + 0.5, top + 0.6, count, ha="center", va="center", fontsize=8)
    ax.set(xlim=(0, width), ylim=(top + 1, 0), frame_on=False)
    return fig


@in_house_style
def sums(parts: ArrayLike, names: Sequence[str]) -> Figure:
    """Draw vectors that add up: how long each is, and its step along their sum.

    The step of a vector is its dot product with the sum, divided by the length of the
    sum. Each begins where the one above it ended; a step back is orange and hatched.

    Parameters
    ----------
    parts
        (count, width), an array or a tensor; its rows add up to the sum.
    names
        One per row.

    Raises
    ------
    ValueError
        If the names do not fit the parts, or these add up to nothing, or hold nan or
        an infinite number.
    """
    vectors = _finite("parts", parts)
    if vectors.ndim != 2 or len(vectors) != len(names):
        raise ValueError(
            f"parts has shape {vectors.shape}, but there are {len(names)} names; pass "
            f"shape ({len(names)}, width)"
        )
    whole = np.linalg.norm(vectors.sum(axis=0))
    if whole == 0:
        raise ValueError("parts add up to zero, which has no direction to step along")
    lengths = np.linalg.norm(vectors, axis=1)
    steps = vectors @ vectors.sum(axis=0) / whole
    fig = Figure(figsize=(6.9, 0.25 * len(names) + 1.1), layout="constrained")
    left, right = fig.subplots(1, 2, sharex=True, sharey=True)
    rows, ends = np.arange(len(names)), steps.cumsum()
    left.barh(rows, lengths, 0.7, color=STYLES[2]["color"])
    ahead = {"color": STYLES[1]["color"]}
    back = {"color": STYLES[0]["color"], "hatch": "////", "edgecolor": "white"}
    for row, step, end in zip(rows, steps, ends, strict=True):
        right.barh(row, step, 0.7, end - step, **(ahead if step > 0 else back))
    right.vlines(ends[:-1], rows[:-1] + 0.35, rows[1:] - 0.35, QUIET, linewidth=0.8)
    for ax, title, numbers, places in (
        (left, "length", lengths, lengths),
        (right, "step along the sum", steps, np.maximum(ends, ends - steps)),
    ):
        ax.barh(len(names), whole, 0.7, color=INK)
        drawn = zip([*places, whole], [*numbers, whole], strict=True)
        for row, (place, number) in enumerate(drawn):
            beside = {"va": "center", "fontsize": 7.5, "color": QUIET}
            ax.text(
                place + 0.015 * whole, row, f"{number:.2f}".replace("-", "−"), **beside
            )
        ax.set_title(title, fontsize=10, color=INK)
        _quiet(ax)
        ax.grid(axis="y", visible=False)
        ax.tick_params(axis="y", length=0)
    left.set_yticks([*rows, len(names)], [*names, "sum"], parse_math=False)
    left.set_xlim(right=1.12 * max(whole, lengths.max(), ends.max()))
    left.invert_yaxis()
    return fig


def _as_array(name: str, each: ArrayLike) -> np.ndarray:
    """Take a tensor, known by its ``detach``, out of PyTorch, which is not imported."""
    try:
        numbers = each.detach().cpu() if hasattr(each, "detach") else each
        if str(getattr(numbers, "dtype", "")) == "torch.bfloat16":
            numbers = numbers.float()  # NumPy has no bfloat16
        array = np.asarray(numbers)
        if array.dtype.kind in "biuf":
            return array
    except (TypeError, ValueError, RuntimeError):
        pass
    raise TypeError(
        f"{name} must hold numbers, got {reprlib.repr(each)}; pass a tensor, an array, "
        "or lists of one length"
    )


def _finite(name: str, each: ArrayLike) -> np.ndarray:
    array = _as_array(name, each)
    if not np.isfinite(array).all():
        wrong = array[~np.isfinite(array)][0]
        raise ValueError(
            f"{name} holds {wrong}, which has no place in a picture; pass finite "
            "numbers"
        )
    return array


def _require_shares(name: str, array: np.ndarray) -> None:
    # A sum of weights in half precision is 1 to within 0.01.
    wrong = array[~((array >= 0) & (array <= 1.01))]
    if wrong.size:
        raise ValueError(
            f"{name} must lie between 0 and 1, found {wrong[0]:.3g}; pass shares, such "
            "as the weights that come out of a softmax"
        )


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
