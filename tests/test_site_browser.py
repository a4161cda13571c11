"""The site as a reader meets it: keyboard, telephone, paper, dark rooms, no network."""

import shutil

import pytest

from browser import axe_violations
from conftest import ROOT
from lab import jupyterlab

pytestmark = [pytest.mark.site, pytest.mark.browser]

PHONE = {"width": 320, "height": 640}
SAMPLE_PAGES = [
    "",
    "chapters/notebook/",
    "glossary/",
    "source/attend.py.html",
    "404.html",
]
MAX_PAGE_BYTES = 1_500_000


@pytest.fixture(scope="module")
def sample(serve, sample_site):
    """The address of the site that holds every construct once."""
    return serve(sample_site)


@pytest.fixture(scope="module")
def book(serve, book_site):
    """The address of the book's own site."""
    return serve(book_site)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """JupyterLab on a copy of the chapters."""
    folder = tmp_path_factory.mktemp("lab") / "chapters"
    shutil.copytree(ROOT / "chapters", folder)
    with jupyterlab(folder, tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture(scope="module")
def book_pages(book_site):
    """The path of every page of the book, sources and the page for lost readers too."""
    pages = [
        path.relative_to(book_site).as_posix() for path in book_site.rglob("*.html")
    ]
    assert len(pages) > 5
    return sorted(pages)


def is_in_sight(page, selector):
    """Say whether the element takes up room and is not folded away."""
    return page.locator(selector).first.evaluate(
        "e => e.checkVisibility({contentVisibilityAuto: true}) && e.offsetHeight > 1"
    )


def overflow(page):
    """Return by how many pixels the page is wider than its window."""
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_search_finds_and_leads_there(reader, sample):
    page = reader.open(sample + "glossary/")
    page.keyboard.press("Control+k")
    page.keyboard.type("upside")
    hit = page.locator("#hits a").first
    hit.wait_for()
    assert hit.locator("b").text_content() == "Everything › Boxes of code and d_k"
    assert "A mask upside down." in hit.text_content()
    assert hit.locator("mark").text_content() == "upside"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{sample}#boxes-of-code-and-d-k")


def test_search_looks_into_code_and_says_when_it_finds_nothing(reader, sample):
    page = reader.open(sample)
    page.fill("#query", "torch.nothing")
    page.get_by_text("Nothing found for").wait_for()
    page.fill("#query", "hidden input")
    page.get_by_text("1 place", exact=True).wait_for()
    page.keyboard.press("Escape")
    assert not is_in_sight(page, "#hits")


def test_search_says_when_its_index_does_not_come_and_tries_again(reader, sample):
    page = reader.open(sample)
    page.route("**/search.json", lambda route: route.fulfill(status=503))
    page.fill("#query", "upside")
    page.get_by_text("could not be loaded").wait_for()
    page.unroute("**/search.json")
    page.fill("#query", "upside down")
    page.locator("#hits a").first.wait_for()
    assert ["503" in problem for problem in reader.problems] == [True]
    reader.problems.clear()


def test_the_theme_follows_the_system_until_the_reader_chooses(reader, sample):
    page = reader.open(sample, color_scheme="dark")
    dark = background(page)
    page.emulate_media(color_scheme="light")
    page.locator("html[data-theme='light']").wait_for()
    light = background(page)
    assert light != dark
    page.get_by_role("button", name="Switch to the dark theme").click()
    assert background(page) == dark
    page.goto(sample + "glossary/")
    assert background(page) == dark
    page.get_by_role("button", name="Switch to the light theme").click()
    page.reload()
    assert background(page) == light


def test_the_theme_is_set_before_the_body_is_read(reader, sample):
    page = reader.open(sample, color_scheme="dark")
    blocking = "head script[src$='theme.js']:not([type], [async], [defer])"
    assert page.locator(blocking).count() == 1


@pytest.mark.parametrize("path", SAMPLE_PAGES)
@pytest.mark.parametrize(("theme", "width"), [("light", 1400), ("dark", 320)])
def test_axe_finds_nothing(reader, sample, axe, path, theme, width):
    window = {"width": width, "height": 800}
    page = reader.open(sample + path, color_scheme=theme, viewport=window)
    for folded in page.locator("main details").all():
        folded.evaluate("e => (e.open = true)")
    assert axe_violations(page, axe) == []


def test_axe_finds_nothing_in_the_open_search_and_contents(reader, sample, axe):
    page = reader.open(sample, viewport=PHONE)
    page.fill("#query", "mask")
    page.locator("#hits a").first.wait_for()
    assert axe_violations(page, axe) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Contents").click()
    assert axe_violations(page, axe) == []


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_the_book(reader, book, book_pages, axe, theme):
    page = reader.open(book, color_scheme=theme)
    found = {}
    for path in book_pages:
        page.goto(book + path)
        found[path] = axe_violations(page, axe)
    assert {path: faults for path, faults in found.items() if faults} == {}


def test_nothing_scrolls_sideways_on_a_telephone(reader, sample):
    page = reader.open(sample, viewport=PHONE)
    for path in SAMPLE_PAGES:
        page.goto(sample + path)
        assert overflow(page) == 0, path


def test_the_book_fits_a_telephone(reader, book, book_pages):
    page = reader.open(book, viewport=PHONE)
    for path in book_pages:
        page.goto(book + path)
        assert overflow(page) == 0, path


def test_what_is_wider_than_a_telephone_scrolls_by_itself_and_by_key(reader, sample):
    page = reader.open(sample, viewport=PHONE)
    table = page.locator(".scroll[tabindex='0']").first
    table.wait_for()
    assert table.evaluate("e => e.scrollWidth > e.clientWidth")
    assert (
        page.locator("pre:has-text('pip install .')").get_attribute("tabindex") is None
    )


def test_the_header_leaves_room_at_four_hundred_per_cent(reader, sample):
    """1280 by 1024 pixels, magnified four times, are 320 by 256."""
    page = reader.open(sample, viewport={"width": 320, "height": 256})
    page.mouse.wheel(0, 2000)
    page.wait_for_function("scrollY > 500")
    bottom = page.evaluate(
        "document.querySelector('.top').getBoundingClientRect().bottom"
    )
    assert bottom <= 0


def test_the_first_tab_stop_skips_to_the_text(reader, sample):
    page = reader.open(sample)
    page.keyboard.press("Tab")
    focused = page.locator(":focus")
    assert focused.text_content() == "Skip to the text"
    assert focused.evaluate("e => e.getBoundingClientRect().top >= 0")
    assert focused.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.locator(":focus").get_attribute("id") == "main"


def test_arrow_keys_change_tabs_and_their_namesakes(reader, sample):
    page = reader.open(sample)
    page.locator(".tabs input").first.focus()
    assert is_in_sight(page, "text=pip install .")
    page.keyboard.press("ArrowRight")
    assert is_in_sight(page, "text=dependencies:")
    assert not is_in_sight(page, "text=pip install .")
    assert is_in_sight(page, "text=With conda.")


def test_a_prediction_comes_before_the_output(reader, sample):
    page = reader.open(sample + "chapters/notebook/")
    output = "#sample-3 .outputs"
    assert not is_in_sight(page, output)
    page.locator("#sample-3 summary").focus()
    page.keyboard.press("Enter")
    assert is_in_sight(page, output)
    assert page.locator(output).inner_text().strip() == "1"


def test_a_figure_is_seen_before_its_code(reader, sample):
    page = reader.open(sample + "chapters/notebook/")
    output, code = "#sample-27 .outputs", "#sample-27 .code"
    assert not is_in_sight(page, output)
    page.locator("#sample-27 summary").first.press("Enter")
    assert is_in_sight(page, output)
    assert not is_in_sight(page, code)
    page.locator("#sample-27").get_by_text("Show the code of the figure").press("Enter")
    assert is_in_sight(page, code)
    assert is_in_sight(page, "#sample-29 .outputs")
    assert not is_in_sight(page, "#sample-29 .code")


def test_an_explorer_comes_alive(reader, sample):
    page = reader.open(sample + "chapters/notebook/")
    page.get_by_role("button", name="n = 3").click()
    page.get_by_role("button", name="n = 4").wait_for()


def test_a_term_explains_itself_on_focus_until_escape(reader, sample):
    page = reader.open(sample)
    page.locator(".term").first.focus()
    tip = page.get_by_role("tooltip")
    assert tip.text_content() == "A boolean tensor; True means may attend."
    assert page.locator(".term").first.get_attribute("aria-describedby") == "tip"
    page.keyboard.press("Escape")
    assert tip.is_hidden()


def test_a_chapter_explains_the_first_use_of_a_term(reader, sample):
    """By mouse and by key; a link, so that the entry itself is one step away."""
    page = reader.open(sample + "chapters/notebook/")
    tip = page.get_by_role("tooltip")
    page.get_by_role("link", name="masks").hover()
    assert tip.text_content() == "A boolean tensor; True means may attend."
    page.get_by_role("link", name="key heads").focus()
    assert tip.text_content() == "A head that others share."
    page.keyboard.press("Enter")
    page.wait_for_url(f"{sample}glossary/#term-key-head")


def test_a_finger_reads_a_term_first_and_follows_it_then(reader, sample):
    page = reader.open(
        sample + "chapters/notebook/", viewport=PHONE, has_touch=True, is_mobile=True
    )
    tip = page.get_by_role("tooltip")
    page.get_by_role("link", name="masks").tap()
    assert tip.text_content() == "A boolean tensor; True means may attend."
    page.get_by_role("link", name="key heads").tap()
    assert tip.text_content() == "A head that others share."
    page.locator("h1").tap()
    assert tip.is_hidden()
    page.get_by_role("link", name="key heads").tap()
    assert tip.is_visible()
    assert page.url == f"{sample}chapters/notebook/"
    page.get_by_role("link", name="key heads").tap()
    page.wait_for_url(f"{sample}glossary/#term-key-head")


def test_the_contents_open_over_a_telephone_page(reader, sample):
    page = reader.open(sample, viewport=PHONE)
    contents = page.get_by_role("navigation", name="Contents")
    assert contents.is_hidden()
    page.get_by_role("button", name="Contents").click()
    assert contents.is_visible()
    page.keyboard.press("Escape")
    assert contents.is_hidden()
    page.get_by_role("button", name="Contents").click()
    contents.get_by_role("link", name="A notebook").click()
    page.wait_for_url(f"{sample}chapters/notebook/")


def test_neighbours_follow_the_contents(reader, sample):
    page = reader.open(sample)
    for title in ("A notebook", "Glossary"):
        page.locator("a[rel='next']").click()
        assert page.locator("h1").text_content() == title
    assert page.locator("a[rel='next']").count() == 0
    assert page.locator("[aria-current]").text_content() == "Glossary"


def test_paper_shows_everything_but_the_controls(reader, sample):
    page = reader.open(sample, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    for control in (
        ".top",
        "#contents",
        ".outline",
        ".neighbours",
        ".copy",
        ".actions",
    ):
        assert page.locator(control).all() == [] or not is_in_sight(page, control), (
            control
        )
    for hidden in ("text=dependencies:", "text=A folded tip.", "text=With conda."):
        assert is_in_sight(page, hidden), hidden
    assert background(page) == "rgb(255, 255, 255)"


def test_without_scripts_a_page_still_reads(reader, sample):
    page = reader.open(sample + "chapters/notebook/", java_script_enabled=False)
    assert page.get_by_role("img", name="Still").count() == 1
    page.get_by_role("link", name="Glossary").first.click()
    assert page.locator("h1").text_content() == "Glossary"
    assert page.locator("#theme").is_hidden()


def test_motion_is_left_out_for_those_who_ask(reader, sample):
    behaviour = "getComputedStyle(document.documentElement).scrollBehavior"
    page = reader.open(sample, reduced_motion="reduce")
    assert page.evaluate(behaviour) == "auto"
    page.emulate_media(reduced_motion="no-preference")
    assert page.evaluate(behaviour) == "smooth"


def test_the_site_works_below_another_address(reader, serve, sample_site, tmp_path):
    shutil.copytree(sample_site, tmp_path / "shelf" / "book")
    home = f"{serve(tmp_path)}shelf/book/"
    page = reader.open(home)
    page.locator("a[rel='next']").click()
    page.fill("#query", "boolean tensor")
    page.locator("#hits a").first.click()
    page.wait_for_url(f"{home}glossary/")


@pytest.mark.slow
def test_a_first_visit_of_any_page_is_light(reader, book, book_pages):
    for path in book_pages:
        page = reader.open("about:blank")
        sizes = []
        page.on(
            "response", lambda response, sizes=sizes: sizes.append(len(response.body()))
        )
        page.goto(book + path, wait_until="networkidle")
        assert 0 < sum(sizes) <= MAX_PAGE_BYTES, path


def test_the_book_links_to_the_source_it_was_built_from(reader, book, book_site):
    [source, *_] = sorted((book_site / "source" / "mha_teach").rglob("*.py.html"))
    path = source.relative_to(book_site).as_posix()
    page = reader.open(book + path)
    text = (ROOT / path.removeprefix("source/").removesuffix(".html")).read_text(
        "utf-8"
    )
    assert page.locator(".source pre").text_content().strip() == text.strip()


def test_the_formulas_of_the_exercises_fit_a_telephone(reader, book):
    page = reader.open(
        f"{book}chapters/exercises/multi-head-attention/", viewport=PHONE
    )
    formulas = page.locator(".equation").all()
    assert len(formulas) == 2
    for formula in formulas:
        assert formula.evaluate("e => e.scrollWidth <= e.clientWidth")


def folds(page, within):
    """Return what is written on each fold of a page, all of which must be closed."""
    page.locator(f"{within} summary").first.wait_for()
    assert page.locator(f"{within} details[open]").count() == 0
    assert not is_in_sight(page, f"{within} pre")
    return page.locator(f"{within} summary").all_inner_texts()


def test_worked_solutions_are_folded_on_the_site_and_in_jupyterlab(reader, book, lab):
    """No answer is in sight before it is asked for, wherever the page is opened."""
    site = reader.open(f"{book}chapters/exercises/multi-head-attention-solutions/")
    on_the_site = folds(site, "main .cell")
    assert len(on_the_site) == 4
    notebook = "lab/tree/exercises/07_multi_head_attention.ipynb"
    jupyter = reader.open(f"{lab.url(notebook)}&reset")
    jupyter.get_by_role("link", name="on one page").click()
    preview = ".jp-MarkdownViewer .jp-RenderedMarkdown"
    assert folds(jupyter, preview) == on_the_site
    for part, formula in (
        (site.locator("main .cell"), ".katex"),
        (jupyter.locator(preview), "mjx-container"),
    ):
        answer = part.locator("details", has_text="07-mha")
        answer.locator("summary").click()
        code = answer.locator("pre", has_text="def mha(x")
        assert code.is_visible()
        code.locator('span:text-is("def")').first.wait_for()
        answer.locator(formula).nth(2).wait_for()  # W^O and the two widths
        assert answer.locator(formula).count() == 3


def test_the_chapter_leads_to_the_card_in_jupyterlab(reader, lab):
    notebook = lab.url("lab/tree/07_multi_head_attention.ipynb")
    window = {"width": 1366, "height": 6000}
    page = reader.open(f"{notebook}&reset", viewport=window)
    page.get_by_role("link", name="how", exact=True).click()
    heading = page.locator(".jp-MarkdownViewer h1")
    heading.wait_for()
    assert heading.text_content().startswith("The trained models")
