"""A chapter in JupyterLab, as a learner meets it: run, played with, saved."""

import json
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest

from lab import jupyterlab, open_notebook, run_all, wait_until
from mha_teach import workspace
from mha_teach.widgets import Heads
from tools.notebooks import FOLDED, tags

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[1]
CHAPTER = "07_multi_head_attention.ipynb"
GRID = json.loads((ROOT / "chapters" / "artifacts" / "heads_grid.json").read_text())


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", folder, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """The chapters in a repository of their own, with a learner's copies in it."""
    folder = tmp_path_factory.mktemp("clone") / "a book"
    shutil.copytree(ROOT / "chapters", folder / "chapters")
    for name in (".gitignore", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    git(folder.parent, "init", "--quiet", folder.name)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=the book")
    workspace.refresh(folder)
    return folder


@pytest.fixture(scope="module")
def page(clone, browser, tmp_path_factory):
    """The chapter, opened from my-work/ and run from top to bottom."""
    from browser import Reader

    reader = Reader(browser)
    with jupyterlab(clone, tmp_path_factory.mktemp("home")) as lab:
        page = open_notebook(lab, reader, f"my-work/{CHAPTER}", height=30_000)
        run_all(page)
        last = page.locator(".jp-Notebook .jp-CodeCell").last
        last.locator(".finding").wait_for()
        yield page
        reader.close()


CODE_CELLS = [
    each
    for each in nbformat.read(ROOT / "chapters" / CHAPTER, as_version=4).cells
    if each.cell_type == "code"
]


def explorer(page, source: str):
    """The cell whose code starts with some text."""
    at = next(i for i, each in enumerate(CODE_CELLS) if each.source.startswith(source))
    return page.locator(".jp-Notebook .jp-CodeCell").nth(at)


def test_every_cell_runs_and_guards_are_folded(page):
    expected = [
        "" if FOLDED & tags(each) else f"[{number}]:"
        for number, each in enumerate(CODE_CELLS, start=1)
    ]
    prompts = page.locator(".jp-CodeCell .jp-InputPrompt:visible").all_inner_texts()
    assert prompts == expected
    assert (
        page.locator('[data-mime-type="application/vnd.jupyter.stderr"]').count() == 0
    )
    assert page.locator(".jp-RenderedText[data-mime-type*=error]").count() == 0


def test_the_first_picture_says_what_it_shows(page):
    picture = explorer(page, "encoder = ").locator("figure img")
    assert "every token looks at the token before it" in picture.get_attribute("alt")
    assert picture.bounding_box()["width"] > 400


def test_the_keyboard_moves_heads(page):
    heads = explorer(page, "grid = ")
    page.keyboard.press("Escape")
    heads.locator('.landscape [aria-selected="true"]').press("ArrowUp")
    expected = Heads(GRID, num_heads=1, d_k=8)
    heads.locator(".finding", has_text=expected.sentence()).wait_for()
    assert heads.locator(".costs dd").all_inner_texts() == [
        f"{number:,}" for number in expected.costs(1, 8)
    ]


def test_live_heads_tells_python(page):
    live = explorer(page, "live = ")
    live.locator('.landscape [aria-selected="true"]').press("ArrowDown")
    live.locator(".finding", has_text="8 heads of width 4").wait_for()
    asked = explorer(page, "live.num_heads")
    asked.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    asked.locator(".jp-OutputArea").get_by_text("(8, 4)").wait_for()


def test_the_map_opens_where_the_text_points(page):
    finding = explorer(page, "AttentionMap").locator(".finding").inner_text()
    assert finding.startswith("Layer 3, head 1: “it” gives")
    assert "to “cat”" in finding


def test_saving_leaves_the_repository_clean(page, clone):
    saved = clone / "my-work" / CHAPTER
    page.keyboard.press("Escape")
    page.keyboard.press("Control+s")
    assert wait_until(lambda: "text/html" in saved.read_text(), page.wait_for_timeout)
    assert git(clone, "status", "--porcelain") == ""
    assert not list((clone / "my-work").glob("*.py"))
