"""Fixtures shared by the tests of the core, the site, the widgets, the notebooks."""

import importlib
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch

from browser import Reader, chromium, file_server, missing
from explorer_page import PAGE, html_of
from plain_package import plain_package
from tools import site

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture
def plain():
    """``mha_teach`` as users import it, without assertions on its annotations."""
    with plain_package() as package:
        yield package


@pytest.fixture
def in_chapters(monkeypatch):
    """Run code where chapters run, with their figures shown to nobody."""
    monkeypatch.chdir(ROOT / "chapters")
    monkeypatch.setattr("mha_teach.plots.display", lambda *_, **__: None)


@pytest.fixture
def users(plain):
    """``mha_teach.widgets`` as users import it, without assertions on annotations."""
    return importlib.import_module("mha_teach.widgets")


@pytest.fixture(scope="module")
def browser():
    """Chromium for one test module: Playwright's event loop must not outlive it."""
    with chromium() as running:
        yield running


@pytest.fixture
def reader(browser):
    """A reader whose pages must raise no error and ask no other host for anything."""
    someone = Reader(browser)
    yield someone
    someone.close()
    assert someone.problems == []


@pytest.fixture(scope="session")
def serve():
    """Serve folders: ``serve(folder)`` returns the address of a plain file server."""
    with ExitStack() as servers:
        yield lambda folder: servers.enter_context(file_server(folder))


@pytest.fixture
def show(reader, tmp_path):
    """Show explorers (or HTML) on one page, and wait until they are live."""

    def open_page(*explorers, alive=True, **options):
        parts = [x if isinstance(x, str) else html_of(x) for x in explorers]
        (tmp_path / "index.html").write_text(PAGE % "\n".join(parts), "utf-8")
        (tmp_path / "favicon.ico").touch()
        page = reader.open(address, **options)
        if alive:
            page.wait_for_selector('figure[data-state="live"]')
        return page

    with file_server(tmp_path) as address:
        yield open_page


@pytest.fixture(scope="session")
def theme_build(tmp_path_factory):
    """A copy of theme/ with its npm packages, built anew."""
    copy = tmp_path_factory.mktemp("theme") / "theme"
    shutil.copytree(ROOT / "theme", copy, ignore=shutil.ignore_patterns("node_modules"))
    npm = shutil.which("npm")
    if npm is None:
        missing("the theme's own tests need Node.js and npm")
    install = subprocess.run(
        [npm, "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"],
        cwd=copy,
        capture_output=True,
        encoding="utf-8",
    )
    if install.returncode != 0:
        missing(
            f"npm ci failed, which needs the network once:\n{install.stderr[-500:]}"
        )
    subprocess.run(["node", "build.mjs"], cwd=copy, check=True)
    return copy


@pytest.fixture(scope="session")
def axe(theme_build):
    """The accessibility checker, as a script that a page can run."""
    return theme_build / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="session")
def site_tool():
    """tools/site.py, where Node is there to build with."""
    if shutil.which("node") is None:
        missing("building the site needs Node.js 20 or newer")
    return site


@pytest.fixture(scope="session")
def sample_site(site_tool, tmp_path_factory):
    """The site of theme/test/project, which holds every construct once."""
    project = tmp_path_factory.mktemp("sample") / "book"
    shutil.copytree(ROOT / "theme" / "test" / "project", project)
    copy_theme(project)
    site_tool.build(project)
    return project / "_build" / "html"


@pytest.fixture(scope="session")
def book_site(site_tool):
    """The book's own site, built from the notebooks as they are committed."""
    site_tool.build(ROOT)
    return ROOT / "_build" / "html"


def copy_theme(project: Path) -> None:
    """Put what MyST needs of the theme into a project."""
    ignore = shutil.ignore_patterns("node_modules", "src", "test")
    shutil.copytree(ROOT / "theme", project / "theme", ignore=ignore)
