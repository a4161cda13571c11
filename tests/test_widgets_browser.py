"""The explorers on a plain page, with no kernel and no other host."""

import csv
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import widget_data
from browser import axe_violations
from explorer_page import FAKE_MODEL, PHONE, figure, html_of, saved, texts
from mha_teach.widgets import AttentionMap, Heads, Mask, OneQuery, _host

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[1]
GRID = json.loads((ROOT / "chapters" / "artifacts" / "heads_grid.json").read_text())
SYMBOLS = GRID["task"]["symbols"]


def attention_map(**choices) -> AttentionMap:
    weights = widget_data.weights(3, 2, 7, 7)
    return AttentionMap(weights, widget_data.CHINESE, selected_query=2, **choices)


def chosen(part, grid: str):
    return part.locator(f'.{grid} [aria-selected="true"]')


def names(part, grid: str) -> list[str]:
    cells = part.locator(f".{grid} [role=gridcell]")
    return cells.evaluate_all("cells => cells.map(cell => cell.ariaLabel)")


# ---- Heads


def assert_shows(part, explorer: Heads) -> None:
    """Compare everything on the page with what Python computes."""
    h, d_k = explorer.num_heads, explorer.d_k
    assert texts(part, ".finding") == [explorer.sentence()]
    assert texts(part, ".costs dd") == [f"{n:,}" for n in explorer.costs(h, d_k)]
    shapes = " ".join(texts(part, ".pipeline .shape"))
    for shape in (f"(17, {h * d_k})", f"({h}, 17, {d_k})", f"({h}, 17, 17)"):
        assert shape in shapes
    weights = [float(name.rpartition(" ")[2]) for name in names(part, "strips")]
    assert weights == pytest.approx(explorer.look().weights.ravel(), abs=0.00501)
    assert chosen(part, "landscape").inner_text() == explorer.share(h, d_k)


def test_one_key_changes_shapes_cost_maps_and_accuracy(show):
    part = figure(show(Heads(GRID)))
    assert_shows(part, Heads(GRID))
    chosen(part, "landscape").press("ArrowDown")
    assert_shows(part, Heads(GRID, num_heads=4))
    chosen(part, "landscape").press("ArrowLeft")
    assert_shows(part, Heads(GRID, num_heads=4, d_k=4))


def test_the_focus_moves_along_and_each_grid_is_one_tab_stop(show):
    page = show(Heads(GRID))
    chosen(figure(page), "landscape").press("ArrowRight")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Home")
    assert_shows(figure(page), Heads(GRID, num_heads=1, d_k=2))
    for grid in ("landscape", "strips"):
        stops = page.locator(f'.{grid} [tabindex="0"]')
        assert stops.count() == 1
    page.keyboard.press("Tab")
    focused = (
        "document.querySelector('.mha-explorer').shadowRoot.activeElement.ariaLabel"
    )
    assert page.evaluate(focused).startswith("head 0, position 1")


def test_a_click_does_what_a_key_does(show):
    part = figure(show(Heads(GRID)))
    part.get_by_label("8 heads of width 16").click()
    assert_shows(part, Heads(GRID, num_heads=8, d_k=16))


def test_one_number_is_followed_through_the_steps(show):
    explorer = Heads(GRID, num_heads=2, d_k=8)
    part = figure(show(explorer))
    chosen(part, "strips").press("ArrowDown")
    chosen(part, "strips").press("End")
    look = explorer.look()
    score, weight = look.scores[1, 16], look.weights[1, 16]
    assert "head 1, position 16 (?)" in part.locator("summary").first.inner_text()
    said = [float(x.replace("−", "-")) for x in texts(part, ".trail > li > b")]
    assert said == pytest.approx([score * 8**0.5, score, weight], abs=0.00501)
    products = texts(part, ".trail > li:first-child .ledger li span:last-child")
    total = sum(float(x.replace("−", "-")) for x in products)
    assert total == pytest.approx(score * 8**0.5, abs=8 * 0.00501)


def test_answers_are_those_recorded(show):
    part = figure(show(Heads(GRID, num_heads=1, d_k=2)))
    symbols, example = GRID["task"]["symbols"], GRID["example"]
    said = texts(part, ".answers p")
    recorded = _host_probabilities("h1_dk2")
    for slot, (line, row) in enumerate(zip(said, recorded, strict=True)):
        best = int(row.argmax())
        right = "right" if best == example["answer"][slot] else "wrong"
        assert f"→ {symbols[best]} ({row[best]:.2f}), {right}" in line


def _host_probabilities(cell: str):
    from mha_teach.widgets._grid import halves

    return halves(GRID["cells"][cell]["probabilities"]).reshape(2, -1)


def test_fewer_heads_keep_a_chosen_head(show):
    part = figure(show(Heads(GRID, num_heads=8, selected_head=7)))
    for _ in range(3):
        chosen(part, "landscape").press("ArrowUp")
    assert "head 0" in part.locator("summary").first.inner_text()


def test_any_number_is_explained(show):
    part = figure(show(Heads(GRID)))
    said = part.locator("details p[role=status]")
    assert "512 / 12 = 42.67 is no whole number" in said.inner_text()
    part.get_by_label("num_heads").fill("8")
    assert "512 / 8 = 64: the convention" in said.inner_text()
    part.get_by_label("d_k, if you like").fill("11")
    assert "8 · 11 = 88 wide" in said.inner_text()
    part.get_by_label("num_heads").fill("")
    assert "8 · 11 = 88 wide" in said.inner_text()


@pytest.mark.parametrize("typed", ["0", "-3", "12.5"])
@pytest.mark.parametrize("name", ["d_model", "num_heads", "d_k"])
def test_what_is_no_size_is_named_and_not_drawn(show, name, typed):
    part = figure(show(Heads(GRID)))
    said = part.locator("details p[role=status]")
    bars = part.locator(".widths i")
    field = part.get_by_label(re.compile(f"^{name}"))
    field.fill(typed)
    assert said.inner_text().startswith(f"{name} = {typed} does not work: choose a")
    assert "a whole number from 1 up" in said.inner_text()
    assert bars.count() == 0
    field.fill("16")
    assert "wide" in said.inner_text()
    assert bars.count() == 2


# ---- AttentionMap


def test_a_key_moves_to_the_next_query(show):
    part = figure(show(attention_map()))
    assert texts(part, ".finding") == [attention_map().sentence()]
    chosen(part, "map").press("ArrowDown")
    explorer = attention_map().at(selected_query=3)
    assert texts(part, ".finding") == [explorer.sentence()]
    bars = [float(x) for x in texts(part, ".bars b")]
    assert bars == [round(weight, 2) for _, weight, _ in explorer.ranking()]
    keys = texts(part, ".bars li span:first-child")
    assert keys == [key for key, _, _ in explorer.ranking()]


def test_every_cell_says_query_key_and_weight(show):
    explorer = attention_map(layer=1, head=1)
    weights, _ = explorer.rows(1)
    expected = [
        f"query “{q}” to key “{k}”: weight {weights[i, j]:.2f}"
        for i, q in enumerate(widget_data.CHINESE)
        for j, k in enumerate(widget_data.CHINESE)
    ]
    assert names(figure(show(explorer)), "map") == expected


def test_layer_head_and_query_can_be_chosen_without_a_map(show):
    part = figure(show(attention_map()))
    part.get_by_role("combobox", name="Layer").select_option("2")
    part.get_by_role("combobox", name="Head").select_option("1")
    part.get_by_role("combobox", name="Query token").select_option("##络")
    explorer = attention_map().at(layer=2, head=1, selected_query=5)
    assert texts(part, ".finding") == [explorer.sentence()]
    chosen(part, "all").press("ArrowUp")
    assert texts(part, ".finding") == [explorer.at(layer=1).sentence()]


def test_special_tokens_can_be_hidden(show):
    part = figure(show(attention_map()))
    part.get_by_label(re.compile("Hide special")).check()
    explorer = attention_map(hide_special=True)
    assert texts(part, ".finding") == [explorer.sentence()]
    assert len(names(part, "map")) == 25
    assert "[CLS]" not in " ".join(texts(part, ".strip [role=gridcell]"))


def test_rows_are_queries_and_columns_keys(show):
    weights = widget_data.weights(7, 5)
    explorer = AttentionMap(weights, widget_data.CHINESE, widget_data.ENGLISH)
    part = figure(show(explorer))
    assert texts(part, ".map [role=rowheader]") == widget_data.CHINESE
    header = texts(part, ".map [role=columnheader]")
    assert header == ["query ↓ key →", *widget_data.ENGLISH]
    assert texts(part, ".keys span") == widget_data.ENGLISH
    assert part.get_by_role("combobox", name="Layer").count() == 0


def test_labels_are_text_and_not_markup(show):
    labels = ["<img src=x onerror=alert(1)>", "a&b", '"', "العربية", "👩‍🏫"]
    part = figure(show(AttentionMap(widget_data.weights(2, 5, 5), labels)))
    assert part.locator("img").count() == 0
    assert texts(part, ".map [role=rowheader]") == labels


# ---- each, in every circumstance


EXPLORERS = {
    "Heads": lambda: Heads(GRID),
    "AttentionMap": attention_map,
    "OneQuery": lambda: OneQuery(widget_data.KEYS, labels=widget_data.KEY_NAMES),
    "Mask": lambda: Mask(widget_data.MASK, widget_data.CHINESE, changed=3),
}


@pytest.fixture(params=EXPLORERS)
def explorer(request):
    return EXPLORERS[request.param]()


def moved_by_keys(page):
    """The first thing on a page that the arrow keys move."""
    return page.locator('[role=grid] [tabindex="0"], [type=range][tabindex="0"]').first


def test_twins_on_one_page_live_apart(show):
    page = show(Heads(GRID), attention_map(), Heads(GRID))
    assert page.locator('figure[data-state="live"]').count() == 3
    chosen(figure(page, 2), "landscape").press("ArrowDown")
    assert_shows(figure(page, 2), Heads(GRID, num_heads=4))
    assert_shows(figure(page, 0), Heads(GRID))


def test_without_javascript_figure_caption_and_table_remain(show, explorer):
    page = show(explorer, alive=False, java_script_enabled=False)
    part = figure(page)
    image = part.get_by_role("img")
    assert image.get_attribute("alt") == explorer.alt()
    assert image.bounding_box()["width"] > 300
    assert part.locator("figcaption").inner_text() == explorer.sentence()
    part.locator("summary").click()
    assert part.locator("td").first.is_visible()


def test_a_failing_module_leaves_the_static_figure(show, reader, explorer):
    broken = html_of(explorer)
    for name in ("num_heads", "shape", "keys", "presets"):
        broken = broken.replace(f'"{name}":', '"unknown":')
    page = show(broken, alive=False)
    page.wait_for_selector('figure[data-state="failed"]')
    assert figure(page).get_by_role("img").is_visible()
    assert figure(page).locator("figcaption").inner_text() == explorer.sentence()
    assert len(reader.problems) == 1
    reader.problems.clear()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(show, explorer, axe, theme):
    page = show(explorer)
    page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    page.wait_for_selector(f'.mha-explorer[data-theme="{theme}"]')
    page.locator("summary").last.click()
    page.wait_for_selector(".tables td")
    assert axe_violations(page, axe) == []


def test_theme_follows_the_page(show, explorer):
    page = show(explorer)
    paper = page.locator(".paper")
    colour = "node => getComputedStyle(node).backgroundColor"
    assert paper.evaluate(colour) == "rgb(255, 255, 255)"
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_selector('.mha-explorer[data-theme="dark"]')
    assert paper.evaluate(colour) != "rgb(255, 255, 255)"


def test_theme_follows_the_reader_where_the_page_does(show, explorer):
    page = show(explorer, color_scheme="dark")
    assert page.locator(".mha-explorer").get_attribute("data-theme") == "dark"


OVERFLOWING = """() => [...document.querySelector(".mha-explorer").shadowRoot
  .querySelectorAll("*:not(.tables *, .heard, svg *)")]
  .filter(node => node.getBoundingClientRect().right > 320)
  .map(node => node.outerHTML.slice(0, 80))"""


def test_a_phone_needs_no_sideways_scrolling(show, explorer):
    page = show(explorer, viewport=PHONE)
    page.locator("summary").last.click()
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    assert page.evaluate(OVERFLOWING) == []


LONG = "Donaudampfschifffahrtsgesellschaftskapitän" * 2
OF_LONG_WORDS = {
    "AttentionMap": AttentionMap(np.eye(3), [LONG, "a", LONG], title=LONG),
    "Mask": Mask(np.eye(3, dtype=bool), [LONG, "a", LONG], title=LONG),
}


@pytest.mark.parametrize("kind", OF_LONG_WORDS)
def test_a_long_word_needs_no_sideways_scrolling(show, kind):
    page = show(OF_LONG_WORDS[kind], viewport=PHONE)
    page.locator("summary").last.click()
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    assert page.evaluate(OVERFLOWING) == []


BROKEN_WORDS = """() => {
  const root = document.querySelector(".mha-explorer").shadowRoot;
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const broken = [];
  while (texts.nextNode()) {
    const text = texts.currentNode;
    if (text.parentElement.closest("style, script, svg, select")) continue;
    for (const word of text.data.matchAll(/[!-~−]+/g)) {
      const range = document.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].map(at => at.top));
      if (lines.size > 1) broken.push(word[0]);
    }
  }
  return broken;
}"""


@pytest.mark.parametrize("width", [320, 480, 672, 900])
def test_no_number_and_no_word_is_broken(show, explorer, width):
    page = show(explorer, viewport={"width": width, "height": 800})
    assert page.evaluate(BROKEN_WORDS) == []


@pytest.mark.parametrize("viewport", [PHONE, {"width": 1280, "height": 800}])
def test_controls_are_large_enough_to_touch(show, explorer, viewport):
    page = show(explorer, viewport=viewport)
    kinds = "button, input:not([type=checkbox]), select, summary, .controls label"
    cells = (
        ".landscape [role=gridcell], .strips [role=gridcell], .strip [role=gridcell]"
    )
    for control in page.locator(f"{kinds}, {cells}").all():
        box = control.bounding_box()
        assert min(box["width"], box["height"]) >= 24, control.inner_text()


def test_the_focus_is_visible(show, explorer):
    page = show(explorer)
    for grid in page.locator("[role=grid]").all():
        cell = grid.locator('[tabindex="0"]')
        cell.press("ArrowRight")
        cell = grid.locator('[tabindex="0"]')
        assert cell.evaluate("node => getComputedStyle(node).outlineWidth") == "3px"


def test_a_page_of_slides_does_not_turn_while_an_explorer_moves(show, explorer):
    page = show(explorer)
    page.evaluate(
        "() => { window.heard = []; document.addEventListener("
        "'keydown', (event) => window.heard.push(event.key)) }"
    )
    for key in ("ArrowRight", "ArrowLeft", "a"):
        moved_by_keys(page).press(key)
    controls = page.locator("select, [type=range], [type=number]")
    if controls.count():
        controls.last.press("ArrowDown")
    is_input = moved_by_keys(page).evaluate("node => node.matches('input')")
    assert page.evaluate("window.heard") == ([] if is_input else ["a"])


def test_screen_readers_hear_the_finding_but_not_every_step(show, explorer):
    page = show(explorer)
    heard = page.locator(".heard")
    assert heard.inner_text() == ""
    for _ in range(3):
        moved_by_keys(page).press("ArrowLeft")
        moved_by_keys(page).press(" ")  # paints, where that is what keys do
    page.wait_for_function(
        "() => { const root = document.querySelector('.mha-explorer').shadowRoot;"
        "return root.querySelector('.heard').textContent"
        " === root.querySelector('.finding').textContent }"
    )


def test_the_table_holds_the_numbers_of_the_moment(show):
    part = figure(show(attention_map()))
    part.locator("summary").last.click()
    part.get_by_role("combobox", name="Head").select_option("1")
    weights, _ = attention_map().rows(1)
    cells = [float(x) for x in texts(part, ".tables td")]
    assert cells == pytest.approx(weights.ravel(), abs=0.00501)


def test_svg_of_the_moment_carries_its_sentence(show):
    page = show(Heads(GRID))
    chosen(figure(page), "landscape").press("ArrowDown")
    explorer = Heads(GRID, num_heads=4)
    drawing = ElementTree.fromstring(saved(page, "Save SVG"))
    spoken = " ".join(node.text for node in drawing if node.text)
    assert spoken == explorer.sentence()
    body = explorer.picture().partition('fill="#ffffff"/>')[2].removesuffix("</svg>")
    assert body in saved(page, "Save SVG").decode()


def test_png_is_a_picture(show, explorer):
    png = saved(show(explorer), "Save PNG")
    assert png.startswith(b"\x89PNG\r\n")
    assert len(png) > 5_000


def test_csv_holds_every_weight(show):
    explorer = attention_map(layer=2)
    text = saved(show(explorer), "Save CSV").decode("utf-8-sig")
    header, *rows = csv.reader(io.StringIO(text))
    assert header == ["query", "key", "weight"]
    assert rows[8][:2] == ["球", "球"]
    weights = [float(row[2]) for row in rows]
    assert weights == pytest.approx(explorer.rows(0)[0].ravel(), abs=0.0000501)


def test_numbers_of_the_csv_are_for_programs_to_read(show):
    explorer = Heads(GRID, num_heads=2, d_k=8)
    text = saved(show(explorer), "Save CSV").decode("utf-8-sig")
    header, *rows = csv.reader(io.StringIO(text))
    assert header == ["head", "position", "token", "q · k", "score", "weight"]
    numbers = np.array([row[3:] for row in rows], dtype=float)
    look = explorer.look()
    scores = look.scores.ravel()
    assert (scores < 0).any()
    expected = np.stack([scores * 8**0.5, scores, look.weights.ravel()], axis=-1)
    assert numbers == pytest.approx(expected, abs=0.0000501)


def test_a_label_of_several_lines_is_one_field_of_the_csv(show):
    labels = ["a\rb", "c\nd", 'e,"f"']
    text = saved(show(AttentionMap(np.eye(3), labels)), "Save CSV").decode("utf-8-sig")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert [row[1] for row in rows[1:4]] == labels


def heads_of(symbols: list[str], **choices) -> Heads:
    return Heads(GRID | {"task": GRID["task"] | {"symbols": symbols}}, **choices)


CONTROLS = ["\0", "\x0b", "\x1b"]


@pytest.mark.parametrize(
    "explorer",
    [
        heads_of([f"{x}{CONTROLS[i % 3]}" for i, x in enumerate(SYMBOLS)]),
        AttentionMap(np.eye(3), [f"x{control}" for control in CONTROLS]),
    ],
    ids=["Heads", "AttentionMap"],
)
def test_a_saved_picture_holds_no_control_characters(show, explorer):
    page = show(explorer)
    drawing = ElementTree.fromstring(saved(page, "Save SVG"))
    written = [node.text for node in drawing.iter() if node.text]
    assert len([text for text in written if "\ufffd" in text]) >= 3
    body = explorer.picture().partition('fill="#ffffff"/>')[2].removesuffix("</svg>")
    assert body in saved(page, "Save SVG").decode()
    assert saved(page, "Save PNG").startswith(b"\x89PNG\r\n")


# ---- other models than the page's own

OFF_THE_PAGE = FAKE_MODEL.replace("const stop", "here.remove();\nconst stop")


def test_a_model_that_only_reads_and_sets_is_enough(show, explorer, tmp_path):
    (tmp_path / "module.mjs").write_text(_host.module(explorer.parts), "utf-8")
    page = show(FAKE_MODEL % json.dumps(explorer.state()), alive=False)
    page.wait_for_selector(".mha-explorer")
    before = texts(page, ".finding")
    moved_by_keys(page).press("ArrowRight")
    moved_by_keys(page).press(" ")
    assert texts(page, ".finding") != before
    page.evaluate("stop()")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_made_off_the_page_it_takes_the_theme_of_its_place(
    show, explorer, tmp_path, theme
):
    """JupyterLab makes the outputs of cells that it has not put on the page."""
    (tmp_path / "module.mjs").write_text(_host.module(explorer.parts), "utf-8")
    page = show(OFF_THE_PAGE % json.dumps(explorer.state()), alive=False)
    page.wait_for_function("window.model")
    look = "here.firstChild.dataset.theme"
    assert page.evaluate(look) == "light"
    page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    page.wait_for_timeout(500)
    assert page.evaluate(look) == "light"
    page.evaluate("document.querySelector('main').append(here)")
    page.wait_for_selector(f'.mha-explorer[data-theme="{theme}"]', timeout=5_000)


def test_a_view_that_was_stopped_looks_no_more(show, explorer, tmp_path):
    (tmp_path / "module.mjs").write_text(_host.module(explorer.parts), "utf-8")
    page = show(OFF_THE_PAGE % json.dumps(explorer.state()), alive=False)
    page.wait_for_function("window.model")
    page.evaluate("stop(); document.documentElement.dataset.theme = 'dark'")
    page.evaluate("document.querySelector('main').append(here)")
    page.wait_for_timeout(500)
    assert page.locator(".mha-explorer").get_attribute("data-theme") == "light"


def test_the_view_follows_its_model(show, tmp_path):
    explorer = Heads(GRID)
    (tmp_path / "module.mjs").write_text(_host.module(explorer.parts), "utf-8")
    page = show(FAKE_MODEL % json.dumps(explorer.state()), alive=False)
    page.wait_for_selector(".mha-explorer")
    page.evaluate("model.set('num_heads', 8); model.set('selected_head', 5)")
    assert_shows(page, Heads(GRID, num_heads=8))
    assert "head 5" in page.locator("summary").first.inner_text()
    page.evaluate("model.set('num_heads', 1)")
    assert "head 0" in page.locator("summary").first.inner_text()
