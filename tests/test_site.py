"""The book's own site, and mistakes that must keep it from being built."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT, copy_theme
from mha_teach.exercises import EXERCISES
from mha_teach.exercises.bank import source
from tools import site

pytestmark = pytest.mark.site

MYST_YML = """
version: 1
project:
  title: A small book
  error_rules:
    - {{rule: reference-target-resolves, severity: error}}
    - {{rule: reference-target-has-text, severity: error}}
  toc: [{toc}]
site:
  template: ./theme
  options: {{version: 1.0.0}}
"""
SOUND = {
    "index.md": "# First\n\n[Second](second.md#there)\n",
    "second.md": "# Second\n\n(there)=\n## There\n\nWords.\n",
}


def notebook(name, html):
    """The text of a notebook with one cell, whose output is this HTML."""
    data = {"text/html": html, "text/plain": "said"}
    output = {"output_type": "display_data", "metadata": {}, "data": data}
    cell = {"cell_type": "code", "execution_count": 1, "id": name, "metadata": {}}
    cell |= {"source": "x", "outputs": [output]}
    head = {"metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps({"cells": [cell], **head})


def write_book(folder, pages, config=MYST_YML):
    """Write a project of these pages, with the theme."""
    for name, text in pages.items():
        (folder / name).write_text(text, "utf-8")
    toc = ", ".join(f"{{file: {name}}}" for name in pages)
    (folder / "myst.yml").write_text(config.format(toc=toc), "utf-8")
    copy_theme(folder)
    return folder


@pytest.fixture
def book(tmp_path):
    """A project of two sound pages."""
    return write_book(tmp_path, SOUND)


def test_two_sound_pages_are_built(book, site_tool):
    site_tool.build(book)
    html = book / "_build" / "html"
    assert 'href="second/#there"' in (html / "index.html").read_text("utf-8")
    assert "Words." in (html / "second" / "index.html").read_text("utf-8")


def test_a_built_site_says_how_to_look_at_it(book, site_tool):
    program = [sys.executable, ROOT / "tools" / "site.py"]
    result = subprocess.run(
        program, cwd=book, capture_output=True, encoding="utf-8", check=True
    )
    assert result.stdout.endswith(
        "run this and open http://127.0.0.1:8000:\n"
        "  python3 -m http.server --bind 127.0.0.1 --directory _build/html\n"
    )


# Each mistake stands on a page of its own, named by its key. The three who find them,
# MyST, the theme and the check of what was written, stop one another: three books.
FOUND_BY_MYST = {
    "reference": ("See [](#nowhere).", r'"#nowhere"'),
    "equation": ("See {eq}`nowhere`.", r"nowhere"),
    "section": ("[a section](second.md#nowhere)", r"nowhere"),
    "citation": ("{cite:p}`nobody1999`", r"nobody1999"),
    "directive": ("```{notte}\nWords.\n```", r"unknown directive: notte"),
    "role": ("An {emphasiz}`important` word.", r"unknown role: emphasiz"),
    "figure": ("```{figure} gone.png\n:alt: Gone\n```", r"gone\.png"),
    "formula": ("$$ \\frac{1}{ $$", r"Unexpected end of input"),
    "twice": ("(same)=\n## One\n\n(same)=\n## Two", r"Duplicate.*same"),
}
FOUND_BY_THE_THEME = {
    "link": ("[a file](gone.md)", r"the link to gone\.md leads to no file"),
    "code": ("[code](../gone.py)", r"the link to \.\./gone\.py leads to no file"),
    "anchor": ('<a href="gone/">raw</a>', r"the link to gone/ leads to no file"),
    "node": ("```{mermaid}\nA --> B\n```", r'does not know the node type "mermaid"'),
    "image": ("![](picture.svg)", r"the image picture\.svg has no alt text"),
    "nothing": ("", r"the page is empty"),
}
FOUND_IN_WHAT_WAS_WRITTEN = {
    "picture": ('<img src="https://example.org/x.png" alt="x">', "from another host"),
    "script": ('<script src="//example.org/x.js"></script>', "from another host"),
    "style": ('<p style="background:url(https://example.org/x)">x</p>', "another host"),
    "import": (
        '<script type="module">import "https://example.org/x.js"</script>',
        r"loads https://example\.org/x\.js from another host",
    ),
    "fetch": (
        "<script>fetch('https://example.org/x')</script>",
        r"loads https://example\.org/x from another host",
    ),
    "event": (
        """<p onclick="fetch('//example.org/x')">x</p>""",
        r"loads //example\.org/x from another host",
    ),
    "svg-image": (
        '<svg><image href="https://example.org/x.png"/></svg>',
        r"loads https://example\.org/x\.png from another host",
    ),
    "video": (
        '<video src="https://example.org/x.mp4"></video>',
        r"loads https://example\.org/x\.mp4 from another host",
    ),
    "poster": (
        '<video poster="https://example.org/x.png"></video>',
        r"loads https://example\.org/x\.png from another host",
    ),
    "audio": (
        '<audio><source src="https://example.org/x.ogg"></audio>',
        r"loads https://example\.org/x\.ogg from another host",
    ),
    "embed": (
        '<embed src="https://example.org/x.pdf">',
        r"loads https://example\.org/x\.pdf from another host",
    ),
    "object": (
        '<object data="https://example.org/x.pdf"></object>',
        r"loads https://example\.org/x\.pdf from another host",
    ),
    "srcset": (
        '<img src="data:,x" srcset="data:,x 1x, https://example.org/x.png 2x" alt="">',
        r"loads https://example\.org/x\.png from another host",
    ),
    "srcdoc": (
        """<iframe srcdoc="<img src='https://example.org/x.png'>"></iframe>""",
        r"loads https://example\.org/x\.png from another host",
    ),
    "css-import": (
        "<style>@import 'https://example.org/x.css';</style>",
        r"loads https://example\.org/x\.css from another host",
    ),
    "css-quoted": (
        '<p style="background:url(&quot;https://example.org/x&quot;)">x</p>',
        r"loads https://example\.org/x from another host",
    ),
    "alt": ('<img src="data:image/png;base64,AA==">', "1 images without alt text"),
    "id": ('<p id="main">twice</p>', "the id 'main' is used 2 times"),
    "raw-link": ('<a href="gone.html">x</a>', r"links to gone\.html, which does"),
    "raw-anchor": ('<a href="#gone">x</a>', "links to #gone, but there is no"),
    "raw-outside": (
        '<a href="../../../myst.yml">x</a>',
        r"links to \.\./\.\./\.\./myst\.yml, which does not exist",
    ),
    "windows-path": ("<p>C:/Users/ada/x.py</p>", "this machine: C:/Users/ada"),
    "file-path": ("<p>file:///home/ada</p>", "this machine: file:///home/ada"),
    "mount-path": ("<p>/mnt/book/x.py</p>", "this machine: /mnt/book"),
    "opt-path": ("<p>/opt/book/x.py</p>", "this machine: /opt/book"),
    "path": ("<p>/home/ada/book/x.py</p>", "names a path of this machine: /home/ada"),
    "weight": (f"<p>{'x' * 1_500_000}</p>", r"1,5\d\d,\d\d\d bytes with its assets"),
}


def complaints(site_tool, folder, pages):
    """Return what the builder says about a book with these pages."""
    write_book(folder, SOUND | pages)
    (folder / "picture.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    with pytest.raises(site_tool.SiteError) as caught:
        site_tool.build(folder)
    return str(caught.value)


def markdown(mistakes):
    """One page for each mistake."""
    return {
        f"{name}.md": f"# {name}\n\n{text}\n" for name, (text, _) in mistakes.items()
    }


@pytest.fixture(scope="module")
def said_by_myst(site_tool, tmp_path_factory):
    pages = markdown({k: (f"Words.\n\n{v[0]}", v[1]) for k, v in FOUND_BY_MYST.items()})
    return complaints(site_tool, tmp_path_factory.mktemp("myst"), pages)


@pytest.fixture(scope="module")
def said_by_the_theme(site_tool, tmp_path_factory):
    pages = markdown(FOUND_BY_THE_THEME)
    return complaints(site_tool, tmp_path_factory.mktemp("theme"), pages)


@pytest.fixture(scope="module")
def said_of_what_was_written(site_tool, tmp_path_factory):
    mistakes = FOUND_IN_WHAT_WAS_WRITTEN.items()
    pages = {f"{k}.ipynb": notebook(k, v[0]) for k, v in mistakes}
    return complaints(site_tool, tmp_path_factory.mktemp("written"), pages)


@pytest.mark.parametrize("page", FOUND_BY_MYST)
def test_a_mistake_that_myst_finds_stops_the_site(said_by_myst, page):
    complaint = FOUND_BY_MYST[page][1]
    assert re.search(rf"(?m)^{page}\.md.*{complaint}", said_by_myst)


@pytest.mark.parametrize("page", FOUND_BY_THE_THEME)
def test_a_mistake_that_the_theme_finds_stops_the_site(said_by_the_theme, page):
    complaint = FOUND_BY_THE_THEME[page][1]
    assert re.search(rf"(?m)^{page}\.md: .*{complaint}", said_by_the_theme)


@pytest.mark.parametrize("page", FOUND_IN_WHAT_WAS_WRITTEN)
def test_a_mistake_in_what_was_written_stops_the_site(said_of_what_was_written, page):
    line = rf"(?m)^{page}/index\.html: .*{FOUND_IN_WHAT_WAS_WRITTEN[page][1]}"
    assert re.search(line, said_of_what_was_written)


@pytest.mark.parametrize(
    "said", ["said_by_myst", "said_by_the_theme", "said_of_what_was_written"]
)
def test_sound_pages_are_not_complained_about(said, request):
    assert not re.search(r"(?m)^(index|second)\b", request.getfixturevalue(said))


SOUND_HTML = """<main id="main"><p>Words about /optional/x and a/mnt/x.</p>
<a href="https://example.org">a link is followed, not loaded</a>
<svg><use href="#main"/><a xlink:href="https://example.org"></a></svg>
<img src="data:image/png;base64,AA==" alt="" srcset="data:image/png;base64,AA== 2x">
<script>document.createElementNS("http://www.w3.org/2000/svg", "g") // a comment
</script></main>"""


def written(folder, **files):
    """Return what the check says about a site of these files."""
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    return site.check(folder, [], Path("/nowhere/at/all"))


def test_links_namespaces_and_data_are_not_loads(tmp_path):
    assert written(tmp_path, **{"index.html": SOUND_HTML}) == []


def test_headings_scripts_and_menus_are_not_text(tmp_path):
    html = "<main><h1>A</h1><nav>b</nav><script>c</script><style>d</style></main>"
    found = written(tmp_path, **{"index.html": html})
    assert found == ["index.html: the page is empty"]


def failed_notebook(**metadata):
    """The text of a notebook whose one cell raised."""
    text = json.loads(notebook("cell-3", ""))
    [cell] = text["cells"]
    error = {"output_type": "error", "ename": "KeyError", "evalue": "", "traceback": []}
    cell |= {"outputs": [error], "metadata": metadata}
    return json.dumps(text)


def test_a_failed_cell_is_named(tmp_path, site_tool):
    book = write_book(tmp_path, SOUND | {"failed.ipynb": failed_notebook()})
    found = r"(?m)^files/failed\.ipynb: the cell cell-3 raised KeyError; mend it"
    with pytest.raises(site_tool.SiteError, match=found):
        site_tool.build(book)


def test_an_error_may_be_the_lesson(tmp_path):
    lesson = failed_notebook(tags=["raises-exception"])
    assert written(tmp_path, **{"lesson.ipynb": lesson}) == []


def test_a_site_with_a_fault_is_not_left_standing(book, site_tool):
    site_tool.build(book)
    (book / "second.md").write_text(f"{SOUND['second.md']}\n/home/ada/x\n", "utf-8")
    with pytest.raises(site_tool.SiteError, match="this machine: /home/ada"):
        site_tool.build(book)
    assert not (book / "_build" / "html").exists()


def test_ctrl_c_leaves_no_half_a_site(book, site_tool, monkeypatch, capsys):
    html = book / "_build" / "html"
    html.mkdir(parents=True)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(site_tool, "run_myst", interrupted)
    monkeypatch.chdir(book)
    with pytest.raises(SystemExit) as stopped:
        site_tool.main()
    assert stopped.value.code == 130
    assert capsys.readouterr().out == "\nInterrupted; the site was not built.\n"
    assert not html.exists()


def test_a_file_in_the_way_of_the_site_is_named(book, site_tool):
    (book / "_build").touch()
    with pytest.raises(site_tool.SiteError, match="_build is no folder, or cannot be"):
        site_tool.build(book)


def test_a_build_that_fails_without_a_mark_is_reported(book, site_tool, monkeypatch):
    failed = subprocess.CompletedProcess([], 3, stdout="the disk is full")
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: failed)
    with pytest.raises(site_tool.SiteError, match="failed:\nthe disk is full"):
        site_tool.run_myst(book)


def test_a_page_that_the_contents_name_must_exist(book, site_tool):
    (book / "second.md").unlink()
    with pytest.raises(site_tool.SiteError, match=r"second\.md"):
        site_tool.build(book)


def test_a_path_of_this_project_is_named(book, site_tool):
    (book / "second.md").write_text(f"{SOUND['second.md']}\n`{book}/x.py`\n", "utf-8")
    with pytest.raises(site_tool.SiteError, match=f"this machine: {book}"):
        site_tool.build(book)


def test_without_node_the_way_out_is_named(book, site_tool, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)
    with pytest.raises(site_tool.SiteError, match=r"needs Node\.js 20"):
        site_tool.build(book)


def test_below_another_address(book, site_tool, monkeypatch):
    """Pages link relatively; only the page for lost readers needs the address."""
    monkeypatch.setenv("BASE_URL", "/shelf/book")
    site_tool.build(book)
    html = book / "_build" / "html"
    assert "/shelf/book" not in (html / "second" / "index.html").read_text("utf-8")
    assert 'href="/shelf/book/site.css"' in (html / "404.html").read_text("utf-8")


def test_a_repository_adds_links(tmp_path, site_tool):
    text = MYST_YML.replace("title:", "github: https://github.com/ada/book\n  title:")
    pages = {
        "index.md": "# First\n\nWords.\n",
        "second.ipynb": notebook("a", "<p>1</p>"),
    }
    write_book(tmp_path, pages, text)
    site_tool.build(tmp_path)
    page = (tmp_path / "_build/html/second/index.html").read_text("utf-8")
    for link in (
        "https://colab.research.google.com/github/ada/book/blob/main/second.ipynb",
        "https://mybinder.org/v2/gh/ada/book/main?urlpath=lab/tree/second.ipynb",
        "https://github.com/ada/book/edit/main/second.ipynb",
        "https://github.com/ada/book/issues/new?title=",
    ):
        assert f'href="{link}' in page


def test_the_book_has_every_page_of_its_contents(book_site, site_tool):
    expected = site_tool.expected_pages(ROOT)
    assert "chapters/multi-head-attention/index.html" in expected
    for name in expected:
        assert (book_site / name).stat().st_size > 2000, name


def test_the_book_offers_its_notebooks_as_they_are_committed(book_site):
    offered = sorted((book_site / "files").rglob("*.ipynb"))
    assert offered
    for path in offered:
        committed = ROOT / path.relative_to(book_site / "files")
        assert path.read_bytes() == committed.read_bytes()


def test_the_book_publishes_no_configuration(book_site):
    """MyST's config.json, with paths of this machine, stays where it was made."""
    names = {path.name for path in Path(book_site).iterdir()}
    assert names <= {
        "404.html", "assets", "chapters", "favicon.svg", "files", "index.html",
        "search.json", "site.css", "site.js", "source", "theme.js", "vendor",
    }  # fmt: skip


def test_the_book_has_a_page_for_the_card_of_its_artifact(book_site):
    """In JupyterLab the same link opens the file."""
    chapter = (book_site / "chapters/multi-head-attention/index.html").read_text(
        "utf-8"
    )
    card = "../../chapters/artifacts/heads-grid/"
    for words in ("how", "card", "The trained models"):
        assert f'<a href="{card}">{words}</a>' in chapter
    assert not (book_site / "source/chapters/artifacts").exists()


def test_a_notebook_that_is_offered_says_that_it_needs_the_book(book_site):
    for path in book_site.rglob("index.html"):
        page = path.read_text("utf-8")
        offers = "Download the notebook" in page
        assert offers == ("To run it you need a clone of the book" in page), path


@pytest.fixture(scope="module")
def search_records(book_site):
    """What the search box of the book looks through, by address."""
    records = json.loads((book_site / "search.json").read_text("utf-8"))
    return {record["url"]: record for record in records}


def test_the_search_finds_the_solutions_but_tells_none(search_records):
    page = "chapters/exercises/multi-head-attention-solutions/"
    [record] = [record for url, record in search_records.items() if page in url]
    assert record["title"] == "Worked solutions: multi-head attention"
    titles = [f"{e.id} · {e.title}" for e in EXERCISES.values() if e.id[:2] == "07"]
    assert record["text"].endswith(" ".join(["this page cannot.", *titles]))
    assert record["code"] == ""


def test_the_search_holds_no_solution_anywhere(search_records):
    for exercise in EXERCISES.values():
        code = " ".join(source(exercise.reference).split())
        for url, record in search_records.items():
            assert code not in record["code"], url


def test_the_search_finds_the_functions_of_the_published_sources(
    search_records, book_site
):
    [path] = (book_site / "source").rglob("*.html")
    name = path.relative_to(book_site).as_posix()
    lines = (ROOT / "mha_teach/attention.py").read_text("utf-8").splitlines()
    for function in ("scaled_dot_product_attention", "trace", "from_torch"):
        [line] = (i for i, text in enumerate(lines, 1) if f"def {function}(" in text)
        record = search_records[f"{name}#L{line}"]
        assert (record["title"], record["section"]) == (
            "mha_teach/attention.py",
            function,
        )
        assert f"def {function}(" in record["code"]
        assert record["text"]
