"""The slider of chapter 08: by key in JupyterLab, and what the site shows of it."""

import re
import shutil

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from conftest import ROOT
from lab import jupyterlab, open_notebook, run_all, wait_until_idle

pytestmark = pytest.mark.browser

CHAPTER = "08_heads_add_up.ipynb"
PYTHON_MOVES = "next(x for x in Out.values() if isinstance(x, Slider)).value = 0.5"


def lamps(w, *shown):
    """What the picture says at a value: the lamps of -1e9 and of -inf."""
    values = zip(("-1e9", "-inf"), shown, strict=True)
    said = ".*".join(f"scores, {fill}: {lamp}" for fill, lamp in values)
    return re.compile(rf"at w = {re.escape(w)}\. .*gate: dark.*{said}")


AT_ZERO = lamps("0.0", "LEAKS", "nan")


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    """The chapter in JupyterLab, run from top to bottom, and a cell that sets w."""
    from browser import Reader

    folder = tmp_path_factory.mktemp("lab") / "chapters"
    shutil.copytree(ROOT / "chapters", folder)
    notebook = nbformat.read(folder / CHAPTER, as_version=4)
    notebook.cells.append(new_code_cell(PYTHON_MOVES))
    nbformat.write(notebook, folder / CHAPTER)
    reader = Reader(browser)
    with jupyterlab(folder, tmp_path_factory.mktemp("home")) as lab:
        page = open_notebook(lab, reader, CHAPTER, height=30_000)
        run_all(page)
        picture(page, lamps("0.5", "dark", "dark")).wait_for()
        assert page.get_by_role("slider").input_value() == "0.5"
        yield page
        reader.close()
    assert reader.problems == []


@pytest.fixture
def slider(page):
    """The slider with the focus, in command mode, at w = 0."""
    page.keyboard.press("Escape")
    slider = page.get_by_role("slider", name="w", exact=True)
    slider.fill("0")
    slider.focus()
    picture(page, AT_ZERO).wait_for()
    wait_until_idle(page)
    assert page.locator(".jp-Notebook.jp-mod-commandMode").count() == 1
    return slider


def picture(page, says):
    return page.locator(".jp-CodeCell", has=page.get_by_role("slider")).get_by_role(
        "img", name=says
    )


def test_arrow_keys_move_w_and_switch_the_leak_lamp(page, slider):
    drawn = picture(page, AT_ZERO).get_attribute("src")
    slider.press("ArrowRight")
    picture(page, lamps("0.05", "dark", "dark")).wait_for()
    assert picture(page, "at w = 0.05").get_attribute("src") != drawn
    slider.press("ArrowLeft")
    picture(page, AT_ZERO).wait_for()
    slider.press("ArrowLeft")
    picture(page, lamps("-0.05", "LEAKS", "nan")).wait_for()
    slider.press("End")
    picture(page, lamps("1.5", "dark", "dark")).wait_for()
    assert page.locator("label:has([type=range]) + *").inner_text() == "1.50"


def test_the_new_picture_is_read_out(page, slider):
    slider.press("ArrowUp")
    picture(page, "at w = 0.05").wait_for()
    said = page.get_by_role("status").filter(has_text="at w = 0.05")
    assert said.text_content() == picture(page, "at w").get_attribute("alt")


def test_keys_of_the_notebook_do_nothing_on_the_slider(page, slider):
    cells = page.locator(".jp-Notebook .jp-Cell").count()
    for key in ("a", "b", "d", "d", "x", "m"):
        slider.press(key)
    slider.press("ArrowRight")
    picture(page, "at w = 0.05").wait_for()
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells
    assert slider.evaluate("e => e === document.activeElement")


def test_axe_finds_nothing_in_the_slider(page, slider, axe):
    page.evaluate(axe.read_text("utf-8"))
    output = ".jp-OutputArea-output:has([type=range])"
    found = page.evaluate(f"axe.run({output!r}, {{resultTypes: ['violations']}})")
    assert [rule["id"] for rule in found["violations"]] == []


@pytest.mark.site
def test_the_site_shows_the_saved_picture_and_what_it_takes_to_move_it(
    reader, serve, book_site
):
    page = reader.open(f"{serve(book_site)}chapters/heads-add-up/")
    saved = page.get_by_role("img", name=re.compile(r"at w = \S+ .*gate: dark"))
    assert saved.bounding_box()["width"] > 300
    words = page.locator(".html-output", has=saved).locator("p").inner_text()
    assert re.fullmatch(r"Here w = \d\.\d\d\. To move it, run the notebook\.", words)
    assert page.get_by_role("slider", name="w", exact=True).count() == 0
