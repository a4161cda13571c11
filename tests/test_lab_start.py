"""JupyterLab as the book starts it: the address, the settings, and a quiet terminal."""

import os
import shutil
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from lab import run_all, wait_for_kernel, wait_until
from mha_teach import workspace
from terminal import Terminal

ROOT = Path(__file__).resolve().parents[1]
PAGE = "---\ntitle: Notation\n---\n\n" + "A line.\n\n" * 90 + "(sizes)=\n## Sizes\n"
WAYS = {
    "book.py": [sys.executable, "-P", "mha_teach/cli.py", "lab"],
    "mha-teach": [sys.executable, "-m", "mha_teach.cli", "lab"],
}

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs a terminal of POSIX")


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """A book of one chapter and one page, in a folder whose name has a space."""
    folder = tmp_path_factory.mktemp("start") / "a book"
    (folder / "chapters").mkdir(parents=True)
    (folder / "chapters" / "notation.md").write_text(PAGE)
    cells = [
        new_markdown_cell("The [sizes](notation.md#sizes)."),
        new_code_cell("print(6 * 7)"),
    ]
    notebook = new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, folder / "chapters" / "07_many.ipynb")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "mha_teach", folder / "mha_teach", ignore=ignored)
    return folder


def test_lab_prints_its_address_stops_at_ctrl_c_and_starts_again(book, tmp_path):
    for way, command in WAYS.items():
        lab = Terminal(command, book, tmp_path / way)
        try:
            assert lab.path == "lab/tree/my-work/07_many.ipynb"
            assert lab.opens_its_notebook()
            assert lab.interrupt() == 0
            assert "Traceback" not in lab.text()
        finally:
            lab.close()


def test_options_win_over_the_books_own(book, tmp_path):
    more = ["--log-level=INFO", "--no-browser", "--ServerApp.root_dir=my-work"]
    lab = Terminal([*WAYS["book.py"], *more], book, tmp_path / "home")
    try:
        assert "[I " in lab.text()
        names = {item["name"] for item in lab.ask("api/contents")["content"]}
        assert "07_many.ipynb" in names
    finally:
        lab.close()


@pytest.fixture(scope="module")
def lab(book, tmp_path_factory):
    running = Terminal(WAYS["book.py"], book, tmp_path_factory.mktemp("home"))
    yield running
    running.close()


@pytest.fixture
def page(lab, reader):
    page = reader.open(lab.url(lab.path) + "&reset")
    page.set_default_timeout(30_000)
    wait_for_kernel(lab, page, lab.path.removeprefix("lab/tree/"))
    return page


@pytest.mark.browser
def test_run_all_and_save_leave_the_terminal_quiet_and_the_text_unchanged(
    lab, page, book
):
    run_all(page)
    page.locator(".jp-OutputArea").get_by_text("42").wait_for()
    page.keyboard.press("Control+s")
    copy = book / "my-work" / "07_many.ipynb"
    assert wait_until(lambda: '"42' in copy.read_text(), page.wait_for_timeout)
    assert lab.after_the_address().strip() == ""
    assert workspace.restore(book, "07")[1] is None


@pytest.mark.browser
def test_a_link_opens_the_page_as_it_is_read_at_the_right_place(page):
    page.get_by_role("link", name="sizes").click()
    shown = page.locator(".jp-MarkdownViewer")
    shown.get_by_role("heading", name="Notation").wait_for()
    heading = shown.get_by_role("heading", name="Sizes")
    assert wait_until(
        lambda: heading.bounding_box()["y"] < 720, page.wait_for_timeout
    ), heading.bounding_box()


@pytest.mark.browser
def test_no_news_are_asked_for_or_offered(lab, reader):
    asked = []
    page = reader.open(lab.url("lab") + "&reset")
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_selector(".jp-Launcher, .jp-Notebook")
    page.wait_for_timeout(5000)
    assert [url for url in asked if "/news" in url or "/update" in url] == []
    assert page.get_by_text("news").count() == 0
