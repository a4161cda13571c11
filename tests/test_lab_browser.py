"""The explorers in JupyterLab: with a kernel, reopened, untrusted, exported."""

import json
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from lab import (
    cell,
    jupyterlab,
    open_notebook,
    run_all,
    run_cell,
    wait_for_kernel,
    wait_until,
)
from mha_teach.widgets import Heads, Mask, OneQuery

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[1]
GRID_FILE = ROOT / "chapters" / "artifacts" / "heads_grid.json"
GRID = json.loads(GRID_FILE.read_text())
CELLS = [
    f"import json\nfrom mha_teach.widgets import Heads\n"
    f"grid = json.load(open({str(GRID_FILE)!r}))\nHeads(grid)",
    "live = Heads(grid).live()\nlive",
    "print('Python sees', live.num_heads, live.d_k)",
    "live.d_k = 16",
    "from mha_teach.widgets import OneQuery\n"
    "query = OneQuery([(1.2, 0.4), (2.4, 1.6), (-0.8, 1.9)]).live()\nquery",
    "print('Python sees', query.x, query.y, query.temperature)",
    "from mha_teach import masks\n"
    "from mha_teach.widgets import Mask\n"
    "board = Mask(masks.causal(5)).live()\nboard",
    "print('Python sees', board.preset, board.mask[1])",
    "board.preset = 'window'",
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebooks")
    with jupyterlab(folder, tmp_path_factory.mktemp("home")) as running:
        yield running


def write(lab, name: str, cells: list) -> Path:
    """Write a notebook; a str is the source of a cell with code."""
    cells = [new_code_cell(x) if isinstance(x, str) else x for x in cells]
    notebook = new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, lab.folder / name)
    return lab.folder / name


def press(part, key: str) -> None:
    part.locator('.landscape [aria-selected="true"]').press(key)


def shows(part, **choices) -> None:
    """Wait until an explorer states the finding of these choices."""
    sentence = Heads(GRID, **choices).sentence()
    part.locator(".finding", has_text=sentence).wait_for()


@pytest.fixture(scope="module")
def saved(lab, browser):
    """The notebook, run, played with and saved; what happened on the way."""
    from browser import Reader

    path = write(lab, "played.ipynb", CELLS)
    reader = Reader(browser)
    page = open_notebook(lab, reader, path.name)
    run_cell(page, 0)
    run_cell(page, 1)
    plain, live = cell(page, 0), cell(page, 1)
    shows(plain)
    shows(live)
    yield path, page, plain, live
    reader.close()


def test_arrow_keys_move_the_explorer_in_command_mode(saved):
    _, page, plain, _ = saved
    page.keyboard.press("Escape")
    page.wait_for_selector(".jp-Notebook.jp-mod-commandMode")
    press(plain, "ArrowDown")
    shows(plain, num_heads=4)
    press(plain, "ArrowLeft")
    shows(plain, num_heads=4, d_k=4)
    assert page.locator(".jp-Notebook.jp-mod-commandMode").count() == 1
    assert "jp-mod-active" in plain.get_attribute("class")


def test_keys_of_the_notebook_do_nothing_inside_an_explorer(saved):
    _, page, plain, _ = saved
    for key in ("a", "x", "d", "d", "m", "1", "0", "0", "Enter"):
        press(plain, key)
    plain.get_by_label("num_heads").press_sequentially("345")
    assert "34512" in plain.locator("details p[role=status]").inner_text()
    assert page.locator(".jp-Notebook .jp-CodeCell").count() == len(CELLS)
    assert page.locator(".jp-Notebook.jp-mod-commandMode").count() == 1
    shows(plain, num_heads=4, d_k=4)


def test_live_tells_python(saved):
    _, page, plain, live = saved
    press(live, "ArrowDown")
    press(live, "ArrowDown")
    shows(live, num_heads=8)
    run_cell(page, 2)
    cell(page, 2).get_by_text("Python sees 8 8").wait_for()
    assert (
        plain.locator(".finding").inner_text() != live.locator(".finding").inner_text()
    )


def test_python_moves_the_view(saved):
    _, page, _, live = saved
    run_cell(page, 3)
    shows(live, num_heads=8, d_k=16)


def test_reopened_notebook_is_alive(lab, saved, reader):
    path, page, _, _ = saved
    page.keyboard.press("Control+s")
    assert wait_until(lambda: "text/html" in path.read_text(), page.wait_for_timeout)
    again = open_notebook(lab, reader, path.name)
    shows(cell(again, 0))
    press(cell(again, 0), "ArrowUp")
    shows(cell(again, 0), num_heads=1)


def test_untrusted_notebook_shows_figure_caption_and_table(lab, saved, reader):
    path, _, _, _ = saved
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].source += "  # from somebody else"
    nbformat.write(notebook, lab.folder / "untrusted.ipynb")
    page = open_notebook(lab, reader, "untrusted.ipynb")
    for part in (cell(page, 0), cell(page, 1)):
        image = part.get_by_role("img", name="accuracy of 16 small layers")
        assert image.bounding_box()["width"] > 300
        assert part.locator("figcaption").inner_text() == Heads(GRID).sentence()
        part.locator("summary").click()
        assert part.locator("td").first.is_visible()
        assert part.locator(".mha-explorer").count() == 0


@pytest.mark.parametrize("scripts", [True, False])
def test_exported_page_is_alive_or_sane(saved, reader, serve, tmp_path, scripts):
    path, _, _, _ = saved
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata.pop("widgets", None)
    for output in notebook.cells[1].outputs:
        output.data.pop("application/vnd.jupyter.widget-view+json")
    exporter = HTMLExporter(mathjax_url="", require_js_url="", jquery_url="")
    html, _ = exporter.from_notebook_node(notebook)
    (tmp_path / "index.html").write_text(html, "utf-8")
    (tmp_path / "favicon.ico").touch()
    page = reader.open(serve(tmp_path), java_script_enabled=scripts)
    if scripts:
        shows(page.locator("figure").first)
        press(page.locator("figure").first, "ArrowDown")
        shows(page.locator("figure").first, num_heads=4)
        assert page.locator(".mha-explorer").count() == 2
    else:
        assert page.locator("figure img").count() == 2
        assert page.locator("figcaption").first.inner_text() == Heads(GRID).sentence()


def test_a_query_moved_by_keys_in_command_mode_tells_python(saved):
    _, page, _, _ = saved
    run_cell(page, 4)
    part = cell(page, 4)
    part.get_by_role("slider", name="query, x").focus()
    page.wait_for_selector(".jp-Notebook.jp-mod-commandMode")
    for key in ("ArrowRight", "ArrowUp", "Shift+ArrowUp", "a", "d", "d"):
        page.keyboard.press(key)
    part.get_by_role("combobox", name="Temperature").select_option("0.5")
    moved = OneQuery(
        [(1.2, 0.4), (2.4, 1.6), (-0.8, 1.9)], x=1.1, y=1.1, temperature=0.5
    )
    part.locator(".finding", has_text=moved.sentence()).wait_for()
    assert page.locator(".jp-Notebook .jp-CodeCell").count() == len(CELLS)
    run_cell(page, 5)
    cell(page, 5).get_by_text("Python sees 1.1 1.1 0.5").wait_for()


def test_a_mask_painted_by_keys_in_command_mode_tells_python(saved):
    _, page, _, _ = saved
    run_cell(page, 6)
    part = cell(page, 6)
    mask = np.tril(np.ones((5, 5), bool))
    part.locator(".finding", has_text=Mask(mask).sentence()).wait_for()
    page.keyboard.press("Escape")
    part.locator('.board [tabindex="0"]').focus()
    page.wait_for_selector(".jp-Notebook.jp-mod-commandMode")
    for key in ("ArrowDown", " ", "ArrowLeft", "Enter", "a", "d", "d"):
        page.keyboard.press(key)
    mask[1, 3:] = True
    part.locator(".finding", has_text=Mask(mask).sentence()).wait_for()
    assert page.locator(".jp-Notebook .jp-CodeCell").count() == len(CELLS)
    assert page.locator(".jp-Notebook.jp-mod-commandMode").count() == 1
    run_cell(page, 7)
    said = "Python sees painted (True, True, False, True, True)"
    cell(page, 7).get_by_text(said).wait_for()
    run_cell(page, 8)
    window = np.triu(np.tril(np.ones((5, 5), bool)), -2)
    part.locator(".finding", has_text=Mask(window).sentence()).wait_for()


LIVE = ".jp-OutputArea-output > .lm-Widget > .mha-explorer"


def is_in_sight(part) -> bool:
    """Scroll there: Playwright itself waits for what has no size before it is seen."""
    part.evaluate("node => node.scrollIntoView()")
    return part.is_visible()


def assert_light(page) -> None:
    """Look at the paper of the live explorer, once it has come into sight."""
    live = page.locator(LIVE)
    live.wait_for(state="attached")
    assert wait_until(lambda: is_in_sight(live), page.wait_for_timeout)
    page.wait_for_timeout(500)
    assert live.get_attribute("data-theme") == "light"
    colour = "node => getComputedStyle(node).backgroundColor"
    assert live.locator(".paper").evaluate(colour) == "rgb(255, 255, 255)"


def test_a_live_explorer_below_the_window_is_light(lab, reader):
    """JupyterLab puts cells on the page bit by bit, and runs those not there yet."""
    space = [new_markdown_cell("Space.") for _ in range(400)]
    path = write(lab, "below.ipynb", [CELLS[0], *space, CELLS[1]])
    page = open_notebook(lab, reader, path.name, height=768)
    run_all(page)
    assert_light(page)
    page.keyboard.press("Control+s")
    assert wait_until(lambda: "text/html" in path.read_text(), page.wait_for_timeout)
    page.reload()
    wait_for_kernel(lab, page, path.name)
    assert_light(page)
