"""The explorers in the chapters of the built site: keys alone, no kernel, no net."""

import json

import pytest

import test_mask_browser
import test_one_query_browser
import test_widgets_browser
from conftest import ROOT
from mha_teach import masks
from mha_teach.widgets import Heads, Mask, OneQuery

pytestmark = [pytest.mark.site, pytest.mark.browser]

GRID = json.loads((ROOT / "chapters" / "artifacts" / "heads_grid.json").read_text())


@pytest.fixture
def explorer_in(reader, serve, book_site):
    """Open a chapter; the reader refuses every other host."""

    def first(chapter: str):
        page = reader.open(f"{serve(book_site)}chapters/{chapter}/")
        part = page.locator("figure[data-mha]").first
        part.scroll_into_view_if_needed()
        part.locator(".finding").wait_for()
        return part

    return first


def test_one_key_moves_the_query_of_chapter_01(explorer_in):
    part = explorer_in("soft-lookup")
    keys = [(1.0, 0.5), (2.5, 1.25), (-0.4, 2.4), (-0.6, -2.2)]
    test_one_query_browser.assert_shows(part, OneQuery(keys, x=-1.0, y=1.5))
    test_one_query_browser.slider(part, "x").press("ArrowRight")
    test_one_query_browser.assert_shows(part, OneQuery(keys, x=-0.9, y=1.5))


def test_one_key_paints_the_mask_of_chapter_04(explorer_in):
    part = explorer_in("masks")
    words = ["the", "cat", "sat", "on", "a", "mat"]
    mask = masks.causal(6).tensor()
    test_mask_browser.assert_shows(part, Mask(mask, words, changed=4))
    part.get_by_label("New tokens from").select_option("3")
    test_mask_browser.assert_shows(part, Mask(mask, words, changed=3))
    part.locator('.board [tabindex="0"]').press(" ")
    mask[0, 5] = True
    test_mask_browser.assert_shows(part, Mask(mask, words, changed=3))
    assert "leaks" in part.locator(".meter").inner_text()


def test_one_key_changes_shapes_cost_maps_and_accuracy_of_chapter_07(explorer_in):
    part = explorer_in("multi-head-attention")
    test_widgets_browser.assert_shows(part, Heads(GRID, num_heads=2, d_k=8))
    test_widgets_browser.chosen(part, "landscape").press("ArrowDown")
    test_widgets_browser.assert_shows(part, Heads(GRID, num_heads=4, d_k=8))
