"""What a lecturer takes from the book: slides, and figures as SVG."""

import json
import re

import jupytext
import nbformat
import pytest
from nbconvert import SlidesExporter
from nbformat.v4 import new_code_cell, new_notebook, new_output
from traitlets.config import Config

from conftest import ROOT
from tools import notebooks

SOURCES = notebooks.sources()
TO_PROJECT = {"00", "05", "06", "07", "08"}
LECTURES = [
    path
    for path in SOURCES
    if path.parent.name == "chapters" and path.name[:2] in TO_PROJECT
]
SETTINGS = ROOT / "mha_teach" / "jupyter" / "jupyter_config.json"


def twin_of(source):
    return nbformat.read(source.with_suffix(".ipynb"), as_version=4)


@pytest.fixture(params=LECTURES, ids=lambda path: path.stem)
def lecture(request):
    return request.param


@pytest.fixture
def cells(lecture):
    return jupytext.read(lecture).cells


def slide_type(cell):
    return cell.metadata.get("slideshow", {}).get("slide_type")


def is_guard(cell):
    return "guard" in notebooks.tags(cell)


def test_there_are_lectures():
    assert {path.name[:2] for path in LECTURES} == TO_PROJECT


def test_a_section_begins_a_slide(cells):
    for cell in cells:
        if cell.cell_type != "markdown":
            continue
        for heading in re.findall(r"^##? .*", cell.source, flags=re.M):
            assert cell.source.startswith(heading), f"a cell of its own: {heading}"
            assert slide_type(cell) == "slide", heading


def test_set_up_and_guards_are_left_out(cells):
    set_up, *others = (cell for cell in cells if cell.cell_type == "code")
    assert slide_type(set_up) == "skip"
    for cell in others:
        assert (slide_type(cell) == "skip") == is_guard(cell), cell.source


def test_an_answer_is_not_on_screen_with_its_question(cells):
    asked = False
    for cell in cells:
        if cell.cell_type == "markdown":
            asked = asked or "> **Predict.**" in cell.source
        elif asked and not is_guard(cell):
            assert slide_type(cell) in ("subslide", "fragment"), cell.source
            asked = False


def test_no_cell_falls_on_the_slide_before(cells):
    assert [cell.source for cell in cells if slide_type(cell) is None] == []


def slides(notebook):
    """Return the page that nbconvert writes in the book's settings."""
    settings = Config(json.loads(SETTINGS.read_text("utf-8")))
    page, _ = SlidesExporter(config=settings).from_notebook_node(notebook)
    return page


def test_slides_leave_out_what_is_skipped(lecture):
    twin = twin_of(lecture)
    page = slides(twin)
    kept = [cell for cell in twin.cells if slide_type(cell) != "skip"]
    assert re.findall(r'id="cell-id=([\w-]+)"', page) == [cell.id for cell in kept]
    begun = [slide_type(cell) for cell in kept]
    across, down = begun.count("slide"), begun.count("subslide")
    assert page.count("<section") == 2 * across + down  # across holds the first down


def test_slides_hold_a_line_of_code_and_scroll():
    page = slides(new_notebook(cells=[new_code_cell("1")]))
    assert re.search(r"width: 1280,\s+height: 800,", page)
    assert "var scroll = true" in page


def test_slides_show_a_figure_without_its_code():
    cell = new_code_cell("plots.show(it)", metadata={"tags": ["figure"]})
    cell.outputs = [new_output("display_data", {"text/html": "<p>The figure.</p>"})]
    page = slides(new_notebook(cells=[cell]))
    assert "<p>The figure.</p>" in page
    assert "plots" not in page


@pytest.mark.parametrize(
    "source", SOURCES, ids=[f"{p.parent.name}/{p.stem}" for p in SOURCES]
)
def test_a_figure_is_a_drawing(source):
    """A bitmap is blurred on a slide: let plots.show have less to draw."""
    for cell in twin_of(source).cells:
        assert "data:image/png" not in json.dumps(cell.get("outputs", [])), cell.id
