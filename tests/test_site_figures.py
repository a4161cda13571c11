"""The figures of the site, saved for slides: by key, by mouse, without scripts."""

import base64
import html
import re
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest

from conftest import ROOT

pytestmark = [pytest.mark.site, pytest.mark.browser]

DRAWING = re.compile(
    r'<figure><img src="data:image/svg\+xml;base64,([^"]+)" alt="([^"]+)'
)
PAGE = "chapters/heads-add-up/"
SVG = "{http://www.w3.org/2000/svg}svg"


@pytest.fixture(scope="module")
def book(serve, book_site):
    """The address of the book's own site."""
    return serve(book_site)


def drawings(path):
    """Return the bytes of each figure of a notebook, and what is said of it."""
    cells = nbformat.read(path, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    found = [DRAWING.match(o.get("data", {}).get("text/html", "")) for o in outputs]
    return [
        (base64.b64decode(match[1]), html.unescape(match[2]))
        for match in found
        if match
    ]


def open_folds(page):
    for summary in page.locator("details:has(.save) > summary").all():
        summary.press("Enter")


def opacity(link):
    return link.evaluate("e => getComputedStyle(e).opacity")


@pytest.mark.parametrize("scripts", [True, False])
def test_every_figure_of_a_chapter_is_saved_by_key(reader, book, scripts):
    page = reader.open(book + PAGE, java_script_enabled=scripts)
    expected = drawings(ROOT / "chapters" / "08_heads_add_up.ipynb")
    links = page.get_by_role("link", name="Save SVG", include_hidden=True)
    assert links.count() == len(expected) > 1
    open_folds(page)
    for number, (drawing, _) in enumerate(expected, start=1):
        link = page.get_by_role("link", name=f"Save SVG of figure {number}: ")
        with page.expect_download() as waiting:
            link.press("Enter")
        assert waiting.value.suggested_filename == f"heads-add-up-figure-{number}.svg"
        saved = Path(waiting.value.path()).read_bytes()
        assert saved == drawing
        assert ElementTree.fromstring(saved).tag == SVG


def test_the_link_says_which_figure_it_saves(reader, book):
    page = reader.open(book + PAGE)
    _, alt = drawings(ROOT / "chapters" / "08_heads_add_up.ipynb")[0]
    name = f"Save SVG of figure 1: {alt.split('. ')[0]}."
    open_folds(page)
    assert page.get_by_role("link", name=name, exact=True).count() == 1


def test_the_link_is_in_sight_on_hover_and_on_focus_alone(reader, sample_site, serve):
    page = reader.open(serve(sample_site) + "chapters/notebook/")
    figure = page.get_by_role("img", name="A plain drawing.")
    link = page.get_by_role("link", name="Save SVG of figure 1: A plain drawing.")
    assert opacity(link) == "0"
    figure.hover()
    assert opacity(link) == "1"
    page.mouse.move(0, 0)
    assert opacity(link) == "0"
    page.keyboard.press("Tab")  # from here on the focus shows
    link.focus()
    assert opacity(link) == "1"
    box = link.bounding_box()
    assert min(box["width"], box["height"]) >= 24
    page.emulate_media(media="print")
    assert not link.is_visible()


def test_the_link_is_in_sight_where_nothing_hovers(reader, sample_site, serve):
    page = reader.open(
        serve(sample_site) + "chapters/notebook/",
        viewport={"width": 320, "height": 640},
        has_touch=True,
        is_mobile=True,
    )
    link = page.get_by_role("link", name="Save SVG of figure 1: A plain drawing.")
    assert opacity(link) == "1"
    with page.expect_download() as waiting:
        link.tap()
    assert waiting.value.suggested_filename == "notebook-figure-1.svg"


def test_every_drawing_of_the_book_lies_beside_its_page(book_site):
    notebooks = (ROOT / "chapters").rglob("*.ipynb")
    expected = [drawing for path in notebooks for drawing, _ in drawings(path)]
    saved = [path.read_bytes() for path in book_site.rglob("*-figure-*.svg")]
    assert len(saved) > 10
    assert set(saved) <= set(expected)
