"""Figures say what they show, look the same twice, and refuse what they cannot draw."""

import base64
import re

import numpy as np
import pytest
import torch
from matplotlib import font_manager
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
        ],
        ids=["no map", "another size", "no title"],
    )
    def test_what_does_not_fit_is_refused(self, weights, titles, message):
        with pytest.raises(ValueError, match=message):
            plots.attention_maps(weights, TOKENS, titles)


def test_more_weight_is_always_darker():
    red, green, blue, _ = plots.WEIGHT_COLOURS(np.linspace(0, 1, 256)).T
    channels = np.stack([red, green, blue])
    linear = np.where(
        channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
    )
    luminance = np.array([0.2126, 0.7152, 0.0722]) @ linear
    assert np.all(np.diff(luminance) < 0)
    lightest, darkest = luminance[0] + 0.05, luminance[-1] + 0.05
    assert lightest / darkest > 10
