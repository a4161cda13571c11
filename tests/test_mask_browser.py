"""The explorer Mask on a plain page: paint it, read it, copy it."""

import csv
import html
import io
import json
import re

import numpy as np
import pytest
import torch

from browser import axe_violations
from explorer_page import FAKE_MODEL, PHONE, figure, saved, texts
from mha_teach import masks
from mha_teach.widgets import Mask, _host

pytestmark = pytest.mark.browser

WORDS = ["the", "cat", "sat", "on", "the", "mat"]


def causal(n: int) -> np.ndarray:
    return np.tril(np.ones((n, n), bool))


def painted(*cells, n: int = 6) -> np.ndarray:
    """Return the causal mask with some cells turned over."""
    mask = causal(n)
    for cell in cells:
        mask[cell] ^= True
    return mask


def assert_shows(part, explorer: Mask) -> None:
    """Compare everything on the page with what Python computes."""
    assert texts(part, ".finding") == [explorer.sentence()]
    look = explorer.look()
    said = zip(look.change, explorer.verdicts(), strict=True)
    assert texts(part, ".meter b") == [f"{x:.2f} {verdict}" for x, verdict in said]
    assert texts(part, ".meter .name") == explorer.tokens
    cells = part.locator(".board [role=gridcell]")
    names = cells.evaluate_all("cells => cells.map(cell => cell.ariaLabel)")
    places = np.ndindex(look.weights[0].shape)
    assert names == [name_of(explorer, look, i, j) for i, j in places]
    marks = part.locator(".board .leak").count()
    assert (
        marks == np.array(explorer.mask)[: explorer.changed, explorer.changed :].sum()
    )
    select = part.get_by_role("combobox", name="Mask", exact=True)
    assert select.locator("option:checked").inner_text() == explorer.preset


def name_of(explorer: Mask, look, i: int, j: int) -> str:
    says = "may not look"
    if explorer.mask[i][j]:
        says = f"may look, weight {look.weights[0, i, j]:.2f}"
        if i < explorer.changed <= j:
            says += ", and lets the change in"
    query, key = explorer.tokens[i], explorer.tokens[j]
    return f"query “{query}” to key “{key}”: {says}"


def focused(part):
    return part.locator('.board [tabindex="0"]')


def cell(part, i: int, j: int):
    return part.locator(f'.board [data-at="{i},{j}"]')


# ---- painting


def test_keys_paint_and_python_agrees(show):
    part = figure(show(Mask(causal(6))))
    assert_shows(part, Mask(causal(6)))
    focused(part).press(" ")
    assert_shows(part, Mask(painted((0, 5))))
    focused(part).press("ArrowDown")
    focused(part).press("ArrowLeft")
    assert_shows(part, Mask(painted((0, 5))))
    focused(part).press("Enter")
    assert_shows(part, Mask(painted((0, 5), (1, 4))))
    focused(part).press("Enter")
    assert_shows(part, Mask(painted((0, 5))))


def test_a_token_that_may_look_at_nobody_is_pointed_out(show):
    part = figure(show(Mask(causal(6), WORDS)))
    focused(part).press("Home")
    focused(part).press(" ")
    assert_shows(part, Mask(painted((0, 0)), WORDS))
    assert "Token 0 (“the”) may look at nobody" in part.locator(".finding").inner_text()
    assert texts(part, ".meter b")[0] == "0.00 sees nobody"


def test_the_focus_stays_where_it_is_and_the_grid_is_one_tab_stop(show):
    page = show(Mask(causal(6)))
    focused(figure(page)).press("ArrowDown")
    for key in (" ", "Enter", "ArrowDown", " "):
        page.keyboard.press(key)
    assert_shows(figure(page), Mask(painted((2, 5))))
    assert page.locator('.board [tabindex="0"]').count() == 1
    root = "document.querySelector('.mha-explorer').shadowRoot"
    assert page.evaluate(f"{root}.activeElement.dataset.at") == "2,5"


def test_a_key_held_down_paints_once(show):
    page = show(Mask(causal(6)))
    focused(figure(page)).focus()
    for _ in range(4):
        page.keyboard.down(" ")
    page.keyboard.up(" ")
    assert_shows(figure(page), Mask(painted((0, 5))))
    assert page.evaluate("scrollY") == 0


def test_a_click_paints_one_cell(show):
    part = figure(show(Mask(causal(6))))
    cell(part, 2, 4).click()
    assert_shows(part, Mask(painted((2, 4))))
    assert focused(part).get_attribute("data-at") == "2,4"
    cell(part, 2, 4).click()
    assert_shows(part, Mask(causal(6)))


def test_a_drag_paints_what_its_first_cell_becomes(show):
    page = show(Mask(painted((0, 4))))
    part = figure(page)
    cell(part, 0, 3).hover()
    page.mouse.down()
    for j in (4, 5):
        cell(part, 0, j).hover()
    page.mouse.up()
    cell(part, 1, 5).hover()
    assert_shows(part, Mask(painted((0, 3), (0, 4), (0, 5))))


def test_a_drag_that_ends_outside_the_grid_is_over(show):
    page = show(Mask(causal(6)))
    part = figure(page)
    cell(part, 0, 5).hover()
    page.mouse.down()
    part.locator(".title").hover()
    page.mouse.up()
    for i in (1, 2):
        cell(part, i, 5).hover()
    assert_shows(part, Mask(painted((0, 5))))


def test_a_tap_paints_one_cell(show):
    part = figure(show(Mask(causal(6)), viewport=PHONE, has_touch=True))
    cell(part, 2, 4).tap()
    assert_shows(part, Mask(painted((2, 4))))
    cell(part, 3, 4).tap()
    assert_shows(part, Mask(painted((2, 4), (3, 4))))


def test_a_screen_reader_clicks_without_a_pointer(show):
    part = figure(show(Mask(causal(6))))
    cell(part, 1, 3).click()
    cell(part, 2, 3).evaluate("cell => cell.click()")
    assert_shows(part, Mask(painted((1, 3), (2, 3))))
    cell(part, 2, 3).evaluate("cell => cell.click()")
    assert_shows(part, Mask(painted((1, 3))))


# ---- choosing


def test_presets(show):
    part = figure(show(Mask(painted((0, 5)), WORDS)))
    select = part.get_by_role("combobox", name="Mask", exact=True)
    offered = select.locator("option:not([hidden])").all_inner_texts()
    both = masks.combine(masks.causal(6), masks.padding([4], 6))[0, 0]
    expected = {
        "everyone": np.ones((6, 6), bool),
        "causal": causal(6),
        "padding": masks.padding([4], 6)[0, 0].expand(6, 6),
        "causal and padding": both,
        "window": masks.window(6, 3),
    }
    assert offered == list(expected)
    for name, mask in expected.items():
        select.select_option(name)
        assert_shows(part, Mask(mask, WORDS))


def test_the_changed_token(show):
    part = figure(show(Mask(painted((1, 4), (2, 2)), WORDS)))
    for i in (2, 4, 0, 5):
        part.get_by_role("combobox", name="New tokens from").select_option(str(i))
        assert_shows(part, Mask(painted((1, 4), (2, 2)), WORDS, changed=i))
        new = part.locator(".board .new")
        assert new.all_inner_texts() == 2 * WORDS[i:]


def test_the_readout_tells_weight_and_output(show):
    part = figure(show(Mask(painted((0, 5)))))
    look = Mask(painted((0, 5))).look()
    said = " ".join(part.locator(".pair ~ .note").first.inner_text().split())
    assert said.startswith(name_of(Mask(painted((0, 5))), look, 0, 5))
    numbers = [float(x.replace("−", "-")) for x in re.findall(r"−?\d\.\d\d", said)]
    assert numbers[1:] == pytest.approx(look.outputs[:, 0].ravel(), abs=0.00501)


# ---- code


TARGETS = (
    "this book and F.scaled_dot_product_attention",
    "nn.MultiheadAttention",
    "an additive mask",
)


def test_the_code_follows_the_mask_and_says_the_same(show):
    part = figure(show(Mask(causal(6))))
    assert "mask = masks.causal(6).tensor()" in part.locator("textarea").input_value()
    assert_code_makes(part, torch.tensor(causal(6)))
    focused(part).press(" ")
    assert "mask = torch.tensor([" in part.locator("textarea").input_value()
    assert_code_makes(part, torch.tensor(painted((0, 5))))


def assert_code_makes(part, mask: torch.Tensor) -> None:
    """Run the code for each target."""
    found = []
    for target in TARGETS:
        part.get_by_role("combobox", name="Written for").select_option(target)
        names = {}
        exec(part.locator("textarea").input_value(), names)
        assert torch.equal(names["mask"], mask)
        found.append(names.get("attn_mask"))
    assert found[0] is None
    assert torch.equal(found[1], masks.to_torch_mha(mask))
    assert torch.equal(found[2], torch.zeros(6, 6).where(mask, -torch.inf))


def test_a_row_of_nobody_comes_with_a_warning(show):
    part = figure(show(Mask(painted((0, 0)))))
    warning = part.locator(".code .note")
    target = part.get_by_role("combobox", name="Written for")
    assert warning.inner_text() == ""
    target.select_option(TARGETS[1])
    assert "nn.MultiheadAttention by default gives NaN" in warning.inner_text()
    target.select_option(TARGETS[2])
    assert "a plain softmax gives NaN" in warning.inner_text()
    part.get_by_role("combobox", name="Mask", exact=True).select_option("causal")
    assert warning.inner_text() == ""


def test_the_button_copies(show):
    page = show(Mask(causal(6)), permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy as Python").click()
    part = figure(page)
    part.get_by_text("Copied.").wait_for()
    taken = page.evaluate("navigator.clipboard.readText()")
    assert taken == part.locator("textarea").input_value()
    focused(part).press(" ")
    assert part.get_by_text("Copied.").count() == 0


@pytest.mark.parametrize(
    "refusal",
    [
        "writeText: async () => { throw new DOMException('no', 'NotAllowedError') }",
        None,
    ],
)
def test_where_the_clipboard_is_refused_the_code_is_selected(show, refusal):
    page = show(Mask(causal(6)))
    clipboard = f"{{ {refusal} }}" if refusal else "undefined"
    page.evaluate(
        f"Object.defineProperty(navigator, 'clipboard', {{ value: {clipboard} }})"
    )
    page.get_by_role("button", name="Copy as Python").click()
    page.get_by_text("The code is selected; copy it with your keyboard.").wait_for()
    text = page.locator("textarea")
    chosen = "text => text.value.slice(text.selectionStart, text.selectionEnd)"
    assert text.evaluate(chosen) == text.input_value()
    root = "document.querySelector('.mha-explorer').shadowRoot"
    assert page.evaluate(f"{root}.activeElement.tagName") == "TEXTAREA"


# ---- taking it along


def test_the_table_is_that_of_python(show):
    part = figure(show(Mask(causal(6), WORDS)))
    focused(part).press(" ")
    part.locator("summary").click()
    shown = html.unescape(part.locator(".tables").inner_html())
    assert shown == html.unescape(Mask(painted((0, 5)), WORDS).table())


def test_svg_of_the_moment(show):
    page = show(Mask(causal(6), WORDS))
    focused(figure(page)).press(" ")
    explorer = Mask(painted((0, 5)), WORDS)
    body = explorer.picture().partition('fill="#ffffff"/>')[2].removesuffix("</svg>")
    assert body in saved(page, "Save SVG").decode()


def test_csv_holds_every_cell(show):
    explorer = Mask(painted((0, 5)), WORDS, changed=3)
    text = saved(show(explorer), "Save CSV").decode("utf-8-sig")
    header, *rows = csv.reader(io.StringIO(text))
    assert header == ["query", "key", "may look", "weight before", "weight after"]
    assert rows[5][:3] == ["the", "mat", "1"]
    weights = [[float(x) for x in row[3:]] for row in rows]
    expected = explorer.look().weights.reshape(2, -1).T
    np.testing.assert_allclose(weights, expected, atol=0.0000501)


# ---- every circumstance


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_a_leak(show, axe, theme):
    explorer = Mask(painted((0, 5), (2, 2), (2, 1), (2, 0)), WORDS, changed=3)
    page = show(explorer, color_scheme=theme)
    page.locator("summary").click()
    page.wait_for_selector(".tables td")
    assert axe_violations(page, axe) == []


def test_ten_tokens_fit_a_phone(show):
    page = show(Mask(causal(10)), viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    first, second = (cell(figure(page), 0, j).bounding_box() for j in (0, 1))
    assert second["x"] - first["x"] >= 24
    assert first["height"] >= 24
    text = page.locator("textarea")
    assert text.evaluate("text => text.scrollHeight <= text.clientHeight")


def test_rows_and_meter_stand_side_by_side(show):
    part = figure(show(Mask(causal(6), WORDS)))
    for i in range(6):
        row, line = cell(part, i, 0), part.locator(".meter li").nth(i)
        middles = [
            x["y"] + x["height"] / 2 for x in (row.bounding_box(), line.bounding_box())
        ]
        assert middles[0] == pytest.approx(middles[1], abs=1)


def test_the_view_follows_its_model(show, tmp_path):
    explorer = Mask(causal(6))
    (tmp_path / "module.mjs").write_text(_host.module(explorer.parts), "utf-8")
    page = show(FAKE_MODEL % json.dumps(explorer.state()), alive=False)
    page.wait_for_selector(".mha-explorer")
    mask = painted((0, 3))
    page.evaluate(f"model.set('mask', {json.dumps(mask.tolist())})")
    page.evaluate("model.set('changed', 3)")
    assert_shows(page, Mask(mask, changed=3))


def test_twins_live_apart(show):
    page = show(Mask(causal(6)), Mask(causal(6)))
    focused(figure(page, 1)).press(" ")
    assert_shows(figure(page, 1), Mask(painted((0, 5))))
    assert_shows(figure(page, 0), Mask(causal(6)))
