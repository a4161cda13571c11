"""Figures say what they show, look the same twice, and refuse what they cannot draw."""

import base64
import importlib
import re

import numpy as np
import pytest
import torch
from matplotlib import font_manager
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from mha_teach import plots

TOKENS = ["[CLS]", "attention", "looks", "back", "[SEP]"]
CHINESE = re.compile("CJK|SC$|YaHei|PingFang|Hiragino|WenQuanYi|Unicode")


def some_map(n=5):
    return np.random.default_rng(0).dirichlet(np.ones(n), size=n)


@plots.in_house_style
def titled(title):
    fig = Figure(figsize=(1, 1))
    fig.suptitle(title)
    return fig


@pytest.fixture
def shown(monkeypatch):
    """Return what ``show`` hands to the notebook."""
    bundles = []

    def keep(bundle, *, raw):
        assert raw
        bundles.append(bundle)

    monkeypatch.setattr(plots, "display", keep)

    def show(fig, alt="five tokens, each looks back"):
        plots.show(fig, alt)
        return bundles.pop()

    return show


def image(bundle):
    """Split the one image of a bundle into its type and its bytes."""
    pattern = r'<figure><img src="data:(image/[\w+]+);base64,([^"]+)" alt="[^"]*" '
    kind, data = re.match(pattern, bundle["text/html"]).groups()
    return kind, base64.b64decode(data, validate=True)


class TestShow:
    def test_a_figure_with_its_sentence_twice(self, shown):
        bundle = shown(plots.attention_maps([some_map()], TOKENS, ["head 1"]), "a map")
        assert bundle.keys() == {"text/html", "text/plain"}
        assert bundle["text/plain"] == "a map"
        assert 'alt="a map"' in bundle["text/html"]
        kind, data = image(bundle)
        assert kind == "image/svg+xml"
        assert b"<svg" in data

    def test_the_sentence_may_hold_any_character(self, shown):
        bundle = shown(titled("x"), 'n < m, "q" & k')
        assert 'alt="n &lt; m, &quot;q&quot; &amp; k"' in bundle["text/html"]
        assert bundle["text/plain"] == 'n < m, "q" & k'

    @pytest.mark.parametrize("alt", ["", " \n"])
    def test_a_figure_without_a_sentence_is_refused(self, shown, alt):
        with pytest.raises(ValueError, match="alt is empty; say in one sentence"):
            shown(titled("x"), alt)

    def test_twice_the_same_bytes(self, shown):
        once, again = (
            image(shown(plots.attention_maps([some_map()], TOKENS, ["head 1"])))
            for _ in range(2)
        )
        assert once == again

    def test_a_large_figure_becomes_a_bitmap(self, shown):
        fig = Figure(figsize=(2, 2))
        points = np.random.default_rng(0).random((2, 20_000))
        fig.subplots().plot(*points, ".")
        kind, data = image(shown(fig))
        assert kind == "image/png"
        assert data.startswith(b"\x89PNG")

    def test_a_character_without_a_glyph_is_refused(self, shown):
        with pytest.raises(ValueError, match="Glyph .* missing.*; install a font"):
            shown(titled("\U00012000"))

    def test_chinese(self, shown):
        fonts = {font.name for font in font_manager.fontManager.ttflist}
        if not any(CHINESE.search(name) for name in fonts & set(plots.FONTS)):
            pytest.skip("no font with Chinese is installed")
        tokens = ["注", "意", "力"]
        fig = plots.attention_maps([some_map(3)], tokens, ["head 1"])
        assert image(shown(fig))[0] == "image/svg+xml"


class TestAttentionMaps:
    def test_one_map_a_title_rows_are_queries(self):
        weights = [some_map(), some_map().T]
        fig = plots.attention_maps(weights, TOKENS, ["head 1", "head 2"])
        *maps, bar = fig.axes
        assert [ax.get_title() for ax in maps] == ["head 1", "head 2"]
        for ax, each in zip(maps, weights, strict=True):
            (drawn,) = ax.get_images()
            assert np.array_equal(drawn.get_array(), each)
            assert drawn.get_clim() == (0, 1)
            assert [t.get_text() for t in ax.get_xticklabels()] == TOKENS
            assert ax.get_xlabel() == "key"
        assert [t.get_text() for t in maps[0].get_yticklabels()] == TOKENS
        assert maps[0].get_ylabel() == "query"
        assert bar.get_ylabel() == "weight"

    def test_of_a_trace(self):
        weights = torch.rand(2, 5, 5, requires_grad=True).softmax(dim=-1)
        fig = plots.attention_maps(weights, TOKENS, ["head 1", "head 2"])
        for ax, each in zip(fig.axes, weights.detach(), strict=False):
            assert np.array_equal(ax.get_images()[0].get_array(), each.numpy())

    def test_a_token_is_no_formula(self, shown):
        tokens = [r"$\frac$", "$x$", "a_b", "^", r"\$5"]
        fig = plots.attention_maps([some_map()], tokens, ["head 1"])
        image(shown(fig))
        for labels in (fig.axes[0].get_xticklabels(), fig.axes[0].get_yticklabels()):
            assert [t.get_text() for t in labels] == tokens
            assert not any(t.get_parse_math() for t in labels)

    @pytest.mark.parametrize(
        ("weights", "titles", "message"),
        [
            ([], [], "weights is empty; pass at least one map"),
            (
                [np.ones((5, 4))],
                ["head 1"],
                r"a map has shape \(5, 4\), but there are 5 tokens; pass maps of shape "
                r"\(5, 5\)",
            ),
            ([np.ones((5, 5))], [], "1 maps need as many titles, got 0"),
            (
                [np.full((5, 5), -0.5)],
                ["head 1"],
                "weights must lie between 0 and 1, found -0.5; pass shares, such as",
            ),
            ([np.full((5, 5), np.nan)], ["head 1"], "between 0 and 1, found nan;"),
        ],
        ids=["no map", "another size", "no title", "scores", "nan"],
    )
    def test_what_does_not_fit_is_refused(self, weights, titles, message):
        with pytest.raises(ValueError, match=message):
            plots.attention_maps(weights, TOKENS, titles)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.bool])
def test_tensors_of_every_type_are_drawn(dtype):
    weights = torch.eye(2).to(dtype)
    for fig in (
        plots.attention_maps([weights], ["a", "b"], ["head"]),
        plots.tables({"weights": [weights]}, ["head"], ["a", "b"]),
    ):
        assert np.array_equal(fig.axes[0].get_images()[0].get_array(), np.eye(2))


NO_DATA = torch.ones(1, 1, device="meta")


@pytest.mark.parametrize("each", [None, "ab", [[1], [1, 2]], [["a"]], {1}, NO_DATA])
def test_what_holds_no_numbers_is_named(plain, each):
    plots = importlib.import_module("mha_teach.plots")
    for draw in (
        lambda: plots.shares(each, ["a"], ["b"]),
        lambda: plots.curves([1], [plots.Panel("", {"weights": each})], "x"),
        lambda: plots.tables({"weights": [each]}, ["a"], ["b"]),
    ):
        with pytest.raises(TypeError, match="weights must hold numbers, got .*; pass"):
            draw()


class TestCurves:
    widths = (4, 8, 16)
    panels = (
        plots.Panel("spread", {"plain": [2, 3, 4], "divided": torch.ones(3)}, log=True),
        plots.Panel("weight", {"plain": [0.5, 0.7, 1.0], "other": np.ones(3)}),
    )

    def test_a_panel_for_each_quantity_over_one_x(self):
        fig = plots.curves(self.widths, self.panels, "d_k")
        assert [ax.get_title() for ax in fig.axes] == ["spread", "weight"]
        for ax, panel in zip(fig.axes, self.panels, strict=True):
            assert ax.get_xlabel() == "d_k"
            assert ax.get_xscale() == "log"
            for line, numbers in zip(ax.lines, panel.lines.values(), strict=True):
                assert line.get_xdata() == pytest.approx(self.widths)
                assert line.get_ydata() == pytest.approx(np.asarray(numbers))
        assert [t.get_text() for t in fig.axes[0].get_xticklabels()] == ["4", "16"]
        assert [ax.get_yscale() for ax in fig.axes] == ["log", "linear"]
        assert fig.axes[1].get_ylim()[0] == 0

    def test_a_label_keeps_its_style_and_is_named_once(self):
        fig = plots.curves(self.widths, self.panels, "d_k")
        (first, divided), (again, other) = (ax.lines for ax in fig.axes)
        looks = [
            (line.get_color(), line.get_marker(), line.get_linestyle())
            for line in (first, divided, again, other)
        ]
        assert looks[0] == looks[2]
        assert all(len(set(kind)) == 3 for kind in zip(*looks, strict=True))
        (legend,) = fig.legends
        names = [text.get_text() for text in legend.get_texts()]
        assert names == ["plain", "divided", "other"]

    @pytest.mark.parametrize("length", [5, 15, 30])
    def test_labels_of_any_length_are_whole(self, length):
        lines = {name * length: [1, 2, 3] for name in "abc"}
        fig = plots.curves(self.widths, [plots.Panel("one", lines)], "d_k")
        fig.draw_without_rendering()
        (legend,) = fig.legends
        for text in legend.get_texts():
            box = text.get_window_extent()
            assert fig.bbox.x0 <= box.x0 < box.x1 <= fig.bbox.x1
        assert fig.axes[0].bbox.height > 0.5 * fig.bbox.height

    def test_on_a_linear_x_the_panels_share_both_axes(self, shown):
        gap = [0.5, float("nan"), 2.0]
        panels = [
            plots.Panel("one", {"a": gap}),
            plots.Panel("other", {"a": [0, 1, 9]}),
        ]
        fig = plots.curves([-1, 0, 1], panels, "w", log_x=False)
        assert [ax.get_xscale() for ax in fig.axes] == ["linear"] * 2
        assert len({(*ax.get_xlim(), *ax.get_ylim()) for ax in fig.axes}) == 1
        assert fig.axes[0].get_ylim()[0] == 0
        assert fig.axes[0].get_ylim()[1] >= 9
        assert image(shown(fig))[0] == "image/svg+xml"

    def test_what_does_not_fit_is_refused(self):
        with pytest.raises(ValueError, match="panels is empty; pass at least one"):
            plots.curves(self.widths, [], "d_k")
        many = plots.Panel("spread", dict.fromkeys("abcd", [1, 2, 3]))
        with pytest.raises(ValueError, match="4 labels, but only 3 styles .* fewer"):
            plots.curves(self.widths, [many], "d_k")


class TestPoints:
    groups = {
        "fresh": (torch.ones(3) / 2, [0.4, 0.5, 0.6]),
        "trained": ([1, 2], [1, 4]),
    }

    def test_groups_on_one_scale_with_their_diagonal(self):
        fig = plots.points(self.groups, "size", "spread")
        (ax,) = fig.axes
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("size", "spread")
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
        assert ax.get_aspect() == 1
        *groups, diagonal, level, upright = ax.lines
        for line, (x, y) in zip(groups, self.groups.values(), strict=True):
            assert line.get_linestyle() == "None"
            assert line.get_xdata() == pytest.approx(np.asarray(x))
            assert line.get_ydata() == pytest.approx(np.asarray(y))
        assert diagonal.get_xy1() == (1, 1)
        assert diagonal.get_xy2() == (2, 2)
        assert set(level.get_ydata()) == set(upright.get_xdata()) == {1}
        names = [text.get_text() for text in ax.get_legend().get_texts()]
        assert names == list(self.groups)

    def test_what_does_not_fit_is_refused(self):
        with pytest.raises(ValueError, match="groups is empty; pass at least one"):
            plots.points({}, "size", "spread")
        many = dict.fromkeys("abcd", ([1], [1]))
        with pytest.raises(ValueError, match="4 labels, but only 3 styles"):
            plots.points(many, "size", "spread")


def luminance(red, green, blue):
    """Return the relative luminance of a colour, as contrast is computed from it."""
    channels = np.stack([red, green, blue])
    linear = np.where(
        channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
    )
    return np.array([0.2126, 0.7152, 0.0722]) @ linear


def test_lines_stand_out_from_white_paper():
    for style in plots.STYLES:
        assert 1.05 / (luminance(*to_rgb(style["color"])) + 0.05) > 4.5


def test_more_weight_is_always_darker():
    red, green, blue, _ = plots.WEIGHT_COLOURS(np.linspace(0, 1, 256)).T
    shades = luminance(red, green, blue)
    assert np.all(np.diff(shades) < 0)
    lightest, darkest = shades[0] + 0.05, shades[-1] + 0.05
    assert lightest / darkest > 10


class TestTables:
    LINES = {
        "weights": [some_map(3), some_map(3)],
        "output": [np.eye(3, 7), -np.eye(3)],
    }
    TITLES, ROWS = ("one", "other"), ("a", "b", "$c$")

    def test_one_scale_per_line_below_zero_only_where_needed(self):
        fig = plots.tables(self.LINES, self.TITLES, self.ROWS)
        images = [ax.images[0] for ax in fig.axes if ax.images]
        limits = [image.get_clim() for image in images]
        largest = max(each.max() for each in self.LINES["weights"])
        assert limits == [(0, largest)] * 2 + [(-1, 1)] * 2
        assert [image.get_cmap().name for image in images] == [
            "weights",
            "weights",
            plots.SIGNED_COLOURS,
            plots.SIGNED_COLOURS,
        ]

    def test_rows_are_named_once_and_columns_by_their_titles(self):
        fig = plots.tables(self.LINES, self.TITLES, self.ROWS)
        first, other, *_ = fig.axes
        names = [[t.get_text() for t in ax.get_yticklabels()] for ax in (first, other)]
        assert names == [list(self.ROWS), []]
        assert not first.get_yticklabels()[2].get_parse_math()
        assert (first.get_title(), other.get_title()) == self.TITLES
        bars = [ax.get_ylabel() for ax in fig.axes if ax.get_ylabel()]
        assert bars == list(self.LINES)

    def test_columns_are_named_where_there_are_as_many(self):
        fig = plots.tables(self.LINES, self.TITLES, self.ROWS, ["x", "$y$", "z"])
        names = [[t.get_text() for t in ax.get_xticklabels()] for ax in fig.axes[:4]]
        assert names == [["x", "$y$", "z"], ["x", "$y$", "z"], [], ["x", "$y$", "z"]]
        assert not fig.axes[0].get_xticklabels()[1].get_parse_math()

    def test_tensors_and_a_single_table_will_do(self, shown):
        fig = plots.tables({"scores": [torch.ones(2, 5)]}, ["alone"], ["x", "y"])
        assert image(shown(fig))[0] == "image/svg+xml"

    @pytest.mark.parametrize(
        ("lines", "titles", "message"),
        [
            ({}, ["one"], "there is no table; pass at least one line and one title"),
            ({"scores": []}, [], "there is no table"),
            ({"scores": [np.eye(3)]}, ["a", "b"], "scores: 1 tables for 2 titles"),
            (
                {"scores": [np.eye(2)]},
                ["a"],
                r"scores: a table has shape \(2, 2\), but there are 3 names of rows; "
                r"pass tables \(3, width\)",
            ),
            (
                {"scores": [np.array([[0, -np.inf]] * 3)]},
                ["a"],
                "scores holds -inf, which has no place in a picture; pass finite num",
            ),
        ],
    )
    def test_what_does_not_fit_is_refused(self, lines, titles, message):
        with pytest.raises(ValueError, match=message):
            plots.tables(lines, titles, self.ROWS)


class TestShares:
    WEIGHTS = np.array([[0.9, 0.04, 0.06], [0.3, 0.3, 0.4]])
    KEYS, QUERIES = ["coffee", "tea", "$soup$"], ["espresso", "broth"]

    def bars(self, fig):
        """Return the pieces of each bar, from left to right."""
        pieces = fig.axes[0].patches
        return [pieces[i : i + 3] for i in range(0, len(pieces), 3)]

    def test_a_bar_is_as_long_as_its_weights_together(self):
        fig = plots.shares(self.WEIGHTS, self.KEYS, self.QUERIES)
        for pieces, row in zip(self.bars(fig), self.WEIGHTS, strict=True):
            widths = [piece.get_width() for piece in pieces]
            starts = [piece.get_x() for piece in pieces]
            assert np.allclose(widths, row)
            assert np.allclose(starts, row.cumsum() - row)
        assert [t.get_text() for t in fig.axes[0].get_yticklabels()] == self.QUERIES
        assert fig.axes[0].yaxis_inverted()  # the first query on top

    def test_a_piece_is_named_where_there_is_room(self):
        fig = plots.shares(self.WEIGHTS, self.KEYS, self.QUERIES)
        names = [(t.get_text(), t.get_parse_math()) for t in fig.axes[0].texts]
        expected = ["coffee", "coffee", "tea", "$soup$"]
        assert names == [(name, False) for name in expected]

    def test_marked_keys_are_hatched_in_another_colour(self):
        fig = plots.shares(self.WEIGHTS, self.KEYS, self.QUERIES, marked=range(1, 3))
        for pieces in self.bars(fig):
            assert [piece.get_hatch() for piece in pieces] == [None, "////", "////"]
            marked = [to_rgb(piece.get_facecolor()) for piece in pieces[1:]]
            assert marked == [to_rgb(plots.MARKED_COLOUR)] * 2
        shade, ink = (
            luminance(*to_rgb(colour)) + 0.05
            for colour in (plots.MARKED_COLOUR, plots.INK)
        )
        assert shade / ink > 4.5

    def test_more_is_darker_and_every_name_can_be_read(self):
        weights = np.linspace(0, 1, 11)[:, None]
        fig = plots.shares(weights, ["key"], [""] * 11)
        pieces = [to_rgb(piece.get_facecolor()) for piece in fig.axes[0].patches]
        shades = [luminance(*colour) + 0.05 for colour in pieces]
        assert np.all(np.diff(shades) < 0)
        assert shades[-1] / (luminance(*to_rgb(plots.INK)) + 0.05) > 4.5

    def test_a_tensor_will_do(self, shown):
        weights = torch.rand(2, 3, requires_grad=True).softmax(dim=-1)
        fig = plots.shares(weights, self.KEYS, self.QUERIES)
        assert image(shown(fig))[0] == "image/svg+xml"

    def test_what_does_not_fit_is_refused(self):
        message = (
            r"weights has shape \(3, 2\), but there are 2 queries and 3 keys; "
            r"pass shape \(2, 3\)"
        )
        with pytest.raises(ValueError, match=message):
            plots.shares(self.WEIGHTS.T, self.KEYS, self.QUERIES)
        for wrong, named in [
            (self.WEIGHTS - 0.1, "weights must lie between 0 and 1, found -0.06"),
            (self.WEIGHTS * 1.1, "the sum of a row of weights must .*, found 1.1"),
            (self.WEIGHTS * np.inf, "weights must lie between 0 and 1, found inf"),
        ]:
            with pytest.raises(ValueError, match=named):
                plots.shares(wrong, self.KEYS, self.QUERIES)


class TestCells:
    NAMED = torch.arange(12).view(3, 4)  # 3 tokens, 4 numbers each
    TENSORS = {"named": NAMED, "split": NAMED.view(3, 2, 2).transpose(0, 1)}

    def test_a_block_is_drawn_for_each_index_and_coloured_by_token(self):
        (ax,) = plots.cells(self.TENSORS, width=4).axes
        whole, *blocks = [np.asarray(image.get_array()) for image in ax.images]
        assert whole.tolist() == [[0] * 4, [1] * 4, [2] * 4]
        assert [block.tolist() for block in blocks] == [[[0, 0], [1, 1], [2, 2]]] * 2
        assert {image.get_cmap().N for image in ax.images} == {4}
        assert {image.get_clim() for image in ax.images} == {(0, 3)}

    def test_every_number_stands_in_the_middle_of_its_cell(self):
        (ax,) = plots.cells(self.TENSORS, width=4).axes
        numbers = [text for text in ax.texts if text.get_text().isdigit()]
        assert [t.get_text() for t in numbers[:12]] == [f"{i:02}" for i in range(12)]
        assert [t.get_text() for t in numbers[12:]] == [
            *("00", "01", "04", "05", "08", "09"),
            *("02", "03", "06", "07", "10", "11"),
        ]
        for image, texts in zip(
            ax.images, (numbers[:12], numbers[12:18], numbers[18:]), strict=True
        ):
            left, _, _, top = image.get_extent()
            columns = image.get_array().shape[1]
            for place, text in enumerate(texts):
                row, column = divmod(place, columns)
                at = (left + column + 0.5, top + row + 0.5)
                assert text.get_position() == pytest.approx(at)

    def test_titles_give_the_shape_and_blocks_their_index(self):
        (ax,) = plots.cells(self.TENSORS, width=4).axes
        words = [t.get_text() for t in ax.texts if not t.get_text().isdigit()]
        assert words == ["named\n(3, 4)", "split\n(2, 3, 2)", "[0]", "[1]"]
        bottoms = [image.get_extent()[2] for image in ax.images]
        assert bottoms == [3, 3, pytest.approx(6.6)]

    def test_the_number_to_follow_is_framed_wherever_it_stands(self):
        (ax,) = plots.cells(self.TENSORS, width=4, follow=6).axes
        corners = [frame.get_xy() for frame in ax.patches]
        whole, _, second = ax.images
        assert corners == [
            (whole.get_extent()[0] + 2, 1),
            pytest.approx((second.get_extent()[0], second.get_extent()[3] + 1)),
        ]
        assert not plots.cells(self.TENSORS, width=4).axes[0].patches

    def test_it_stays_small(self, shown):
        fig = plots.cells({"all": torch.arange(40).view(4, 10)}, width=10)
        assert image(shown(fig))[0] == "image/svg+xml"

    def test_tokens_are_darker_one_by_one_and_their_numbers_can_be_read(self):
        shades = [luminance(*to_rgb(each)) + 0.05 for each in plots.TOKEN_COLOURS]
        assert np.all(np.array(shades[:-1]) / shades[1:] > 1.2)
        assert shades[-1] / (luminance(*to_rgb(plots.INK)) + 0.05) > 4.5

    @pytest.mark.parametrize(
        ("tensors", "message"),
        [
            ({}, "tensors is empty; pass at least one"),
            (
                {"flat": torch.arange(4)},
                r"flat: shape \(4,\); pass \(rows, width\) or \(block, rows, width\)",
            ),
            (
                {"long": torch.arange(20).view(5, 4)},
                "5 tokens, but only 4 colours that stay apart; draw fewer",
            ),
        ],
        ids=["nothing", "one axis", "five tokens"],
    )
    def test_what_does_not_fit_is_refused(self, tensors, message):
        with pytest.raises(ValueError, match=message):
            plots.cells(tensors, width=4)


class TestSums:
    PARTS = np.array([[3.0, 0.0], [0.0, 4.0], [-1.0, 1.0], [1.0, -1.0]])
    NAMES = ["a", "b", "$c$", "bias"]  # the sum is (3, 4), of length 5

    def test_lengths_beside_steps_that_end_at_the_length_of_the_sum(self):
        fig = plots.sums(torch.tensor(self.PARTS), self.NAMES)
        lengths, steps = (ax.patches for ax in fig.axes)
        root = 2**0.5
        assert [bar.get_width() for bar in lengths] == pytest.approx(
            [3, 4, root, root, 5]
        )
        assert [bar.get_width() for bar in steps] == pytest.approx(
            [9 / 5, 16 / 5, 1 / 5, -1 / 5, 5]
        )
        *parts, whole = steps
        ends = [bar.get_x() + bar.get_width() for bar in parts]
        assert [bar.get_x() for bar in parts] == pytest.approx([0, *ends[:-1]])
        assert ends[-1] == pytest.approx(5)
        assert whole.get_x() == 0

    def test_a_step_back_looks_different_without_colour(self):
        fig = plots.sums(self.PARTS, self.NAMES)
        hatches = [bar.get_hatch() for bar in fig.axes[1].patches]
        assert hatches == [None, None, None, "////", None]

    def test_rows_are_named_once_and_numbers_written_beside(self, shown):
        fig = plots.sums(self.PARTS, self.NAMES)
        left, right = fig.axes
        names = [t.get_text() for t in left.get_yticklabels()]
        assert names == [*self.NAMES, "sum"]
        assert not left.get_yticklabels()[2].get_parse_math()
        assert [t.get_text() for t in right.texts] == [
            "1.80",
            "3.20",
            "0.20",
            "−0.20",
            "5.00",
        ]
        assert (left.get_xlim(), left.get_ylim()) == (
            right.get_xlim(),
            right.get_ylim(),
        )
        assert image(shown(fig))[0] == "image/svg+xml"

    @pytest.mark.parametrize(
        ("parts", "message"),
        [
            (np.ones((3, 2)), r"parts has shape \(3, 2\), but there are 4 names; pass"),
            (np.ones(4), r"parts has shape \(4,\), but there are 4 names"),
            (np.zeros((4, 2)), "parts add up to zero, which has no direction"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, parts, message):
        with pytest.raises(ValueError, match=message):
            plots.sums(parts, self.NAMES)


class TestRuns:
    PANELS = {
        "heads": {
            "short": {"1": [0.2, 0.1, 0.3], "2": torch.ones(3)},
            "long": {"1": [0.1], "2": [0.9]},
        },
        "one head, then": {"long": {"second layer": [1.0, 0.8]}},
    }
    LEVELS = {"a guess": 0.06, "half": 0.5}

    def test_every_run_is_a_dot_beside_its_setting(self):
        fig = plots.runs(self.PANELS, self.LEVELS, "right")
        heads, other = fig.axes
        assert (heads.get_title(), other.get_title()) == tuple(self.PANELS)
        assert heads.get_ylabel() == "right"
        ticks = [text.get_text() for text in heads.get_xticklabels()]
        assert ticks == ["1", "2"]
        assert other.get_xticklabels()[0].get_text() == "second\nlayer"
        for ax, panel in zip(fig.axes, self.PANELS.values(), strict=True):
            groups = [group for group in ax.lines if group.get_linestyle() == "None"]
            expected = [np.sort(v) for by in panel.values() for v in by.values()]
            for dots, values in zip(groups, expected, strict=True):
                assert dots.get_ydata() == pytest.approx(values)
        first, second, *_ = heads.lines
        assert np.abs(first.get_xdata() - 0).max() < 0.5
        assert np.abs(second.get_xdata() - 1).max() < 0.5

    def test_runs_of_two_labels_stand_apart(self):
        heads, _ = plots.runs(self.PANELS, {}, "right").axes
        short, _, long, _ = heads.lines
        assert short.get_xdata().max() < long.get_xdata().min()

    def test_a_label_keeps_its_style_and_is_named_once(self):
        fig = plots.runs(self.PANELS, {}, "right")
        heads, other = (ax.lines for ax in fig.axes)
        assert other[0].get_color() == heads[2].get_color() != heads[0].get_color()
        (legend,) = fig.legends
        assert [text.get_text() for text in legend.get_texts()] == ["short", "long"]

    def test_levels_cross_every_panel_and_are_named_once(self, shown):
        fig = plots.runs(self.PANELS, self.LEVELS, "right")
        for ax in fig.axes:
            heights = [line.get_ydata()[0] for line in ax.lines[-2:]]
            assert heights == list(self.LEVELS.values())
        assert [text.get_text() for text in fig.axes[0].texts] == list(self.LEVELS)
        assert not fig.axes[1].texts
        assert image(shown(fig))[0] == "image/svg+xml"

    def test_what_does_not_fit_is_refused(self):
        with pytest.raises(ValueError, match="panels is empty; pass at least one"):
            plots.runs({}, {}, "right")
        many = {"heads": dict.fromkeys("abcd", {"1": [1]})}
        with pytest.raises(ValueError, match="4 labels, but only 3 styles"):
            plots.runs(many, {}, "right")
        with pytest.raises(ValueError, match="long runs must lie .* 1, found 98"):
            plots.runs({"heads": {"1": {"long runs": [0.5, 98]}}}, {}, "right")


class TestMarks:
    GROUPS = {
        "one head": {"over queries": [True, False], "$halved$": [False, False]},
        "masks": {"turned over": [True, True]},
    }
    COLUMNS = ["alone", "in_parts"]

    def test_a_cell_is_dark_where_the_answer_is_yes(self):
        [ax] = plots.marks(self.GROUPS, self.COLUMNS).axes
        tables = [image.get_array().tolist() for image in ax.images]
        assert tables == [[[1, 0], [0, 0]], [[1, 1]]]
        no, yes = (luminance(*to_rgb(ax.images[0].cmap(each))) for each in (0, 1))
        assert (no + 0.05) / (yes + 0.05) > 4.5

    def test_groups_rows_and_columns_have_names_and_columns_a_count(self):
        [ax] = plots.marks(self.GROUPS, self.COLUMNS).axes
        rows = [(t.get_text(), t.get_style()) for t in ax.get_yticklabels()]
        assert rows == [
            ("one head", "italic"),
            ("over queries", "normal"),
            ("$halved$", "normal"),
            ("masks", "italic"),
            ("turned over", "normal"),
        ]
        assert not ax.get_yticklabels()[2].get_parse_math()
        assert [t.get_text() for t in ax.get_xticklabels()] == self.COLUMNS
        assert [t.get_text() for t in ax.texts] == ["2", "1"]

    def test_each_name_stands_beside_its_row(self):
        [ax] = plots.marks(self.GROUPS, self.COLUMNS).axes
        tops = [image.get_extent()[3] for image in ax.images]
        assert tops == [1, 4]
        assert ax.get_yticks().tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]

    def test_nothing_is_cut_off(self, shown):
        fig = plots.marks(self.GROUPS, self.COLUMNS)
        inside = fig.get_tightbbox()
        width, height = fig.get_size_inches()
        assert inside.x0 >= 0
        assert inside.y0 >= 0
        assert inside.x1 <= width
        assert inside.y1 <= height
        assert image(shown(fig))[0] == "image/svg+xml"

    @pytest.mark.parametrize(
        ("groups", "message"),
        [
            ({}, "there is no row; pass at least one group with a row"),
            ({"masks": {}}, "there is no row"),
            ({"masks": {"late": [True]}}, "late: 1 answers for 2 names"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, groups, message):
        with pytest.raises(ValueError, match=message):
            plots.marks(groups, self.COLUMNS)
