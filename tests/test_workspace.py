"""The learner's copies: made once, unpaired, and never lost."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from jupytext.sync_contentsmanager import TextFileContentsManager
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from mha_teach import workspace
from tools.claims import slug

ROOT = Path(__file__).resolve().parents[1]


def write_notebook(path, text="two"):
    stream = new_output("stream", name="stdout", text="2\n")
    cells = [
        new_markdown_cell(f"# {text}"),
        new_code_cell("print(2)", execution_count=1, outputs=[stream]),
    ]
    metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "jupytext": {"formats": "ipynb,py:percent"},
        "widgets": {"state": {}},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=cells, metadata=metadata), path)


@pytest.fixture
def root(tmp_path):
    chapters = tmp_path / "chapters"
    write_notebook(chapters / "02_scaling.ipynb")
    write_notebook(chapters / "11_what_heads_see.ipynb")
    write_notebook(chapters / "exercises" / "02_scaling.ipynb")
    write_notebook(chapters / ".ipynb_checkpoints" / "02_scaling-checkpoint.ipynb")
    (chapters / "02_scaling.py").write_text("# %%\nprint(2)\n")
    (chapters / "notation.md").write_text("# Notation\n")
    (chapters / "index.md").write_text("# The front page of the site\n")
    (chapters / "figures").mkdir()
    (chapters / "figures" / "heads.svg").write_text("<svg/>")
    return tmp_path


def in_my_work(root):
    folder = root / "my-work"
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix() for path in files}


def edit(path, text="my own words"):
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].source = text
    nbformat.write(notebook, path)


def first_cell(path):
    return nbformat.read(path, as_version=4).cells[0].source


def test_everything_but_sources_checkpoints_and_the_front_page_is_copied(root):
    messages = workspace.refresh(root)
    assert in_my_work(root) == {
        ".book.json",
        "02_scaling.ipynb",
        "11_what_heads_see.ipynb",
        "exercises/02_scaling.ipynb",
        "figures/heads.svg",
        "notation.md",
    }
    names = "02_scaling.ipynb, 11_what_heads_see.ipynb, exercises/02_scaling.ipynb"
    assert messages == [f"Copied to my-work: {names}"]


def test_copies_have_no_outputs_and_no_pair(root):
    workspace.refresh(root)
    copy = nbformat.read(root / "my-work" / "02_scaling.ipynb", as_version=4)
    assert copy.cells[1].outputs == []
    assert copy.cells[1].execution_count is None
    assert copy.cells[1].source == "print(2)"
    assert set(copy.metadata) == {"kernelspec"}


@pytest.mark.parametrize("title", ["Notation: a list", '"Notation: a list"'])
def test_pages_are_copied_as_jupyterlab_can_show_them(root, title):
    (root / "chapters" / "notation.md").write_text(
        f"---\ntitle: {title}\ndescription: Symbols.\n---\n\nOne name.\n\n"
        "(notation-sizes)=\n## Sizes\n\n(A):\n\n---\n\n$(n)=1$\n"
    )
    workspace.refresh(root)
    assert (root / "my-work" / "notation.md").read_text() == (
        '# Notation: a list\n\nOne name.\n\n<a id="notation-sizes"></a>\n\n## Sizes\n\n'
        "(A):\n\n---\n\n$(n)=1$\n"
    )


def test_a_page_without_a_title_loses_its_front_matter_alone(root):
    page = root / "chapters" / "notation.md"
    page.write_text("---\nsubtitle: none\n---\nOne name.\n")
    workspace.refresh(root)
    assert (root / "my-work" / "notation.md").read_text() == "One name.\n"


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """The copies of the book's own chapters, in a folder of the book's own layout."""
    folder = tmp_path_factory.mktemp("book")
    shutil.copytree(ROOT / "chapters", folder / "chapters")
    workspace.refresh(folder)
    return folder / "my-work"


def test_the_books_own_pages_show_no_source_of_the_site(copies):
    for name in ("notation.md", "references.md"):
        first, *lines = (copies / name).read_text("utf-8").splitlines()
        assert first.startswith("# ")
        assert [line for line in lines if line.endswith(")=") or line == "---"] == []


def prose(path):
    if path.suffix == ".md":
        return path.read_text("utf-8")
    cells = nbformat.read(path, as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def leads_somewhere(page, link):
    """Whether a link leads to a place in a copy, or to a file beside the copies."""
    address, _, place = link.partition("#")
    target = (page.parent / address).resolve() if address else page
    copies = next(parent for parent in page.parents if parent.name == "my-work")
    if not target.is_relative_to(copies):
        return (ROOT / target.relative_to(copies.parent)).exists()
    return target.exists() and (not place or place in places(target))


def places(path):
    """Yield what a link may name: the targets of a page, the headings of the site."""
    text = prose(path)
    yield from re.findall(r'<a id="([^"]+)">', text)
    for heading in re.findall(r"^#+ (.+)$", text, re.M):
        yield slug(heading)


def test_the_links_of_the_copies_lead_somewhere(copies):
    pages = [page for page in copies.rglob("*") if page.suffix in (".md", ".ipynb")]
    found = [
        (page, link)
        for page in pages
        for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", prose(page))
    ]
    assert {"references.md#vaswani-2017", "notation.md"} <= {link for _, link in found}
    assert [each for each in found if not leads_somewhere(*each)] == []


@pytest.mark.parametrize(
    "link",
    ["index.md", "notation.md#none", "#none", "../mha_teach/none.py", "../none.ipynb"],
)
def test_a_link_to_nowhere_is_noticed(copies, link):
    assert not leads_somewhere(copies / "references.md", link)


def test_a_second_time_nothing_is_written_or_said(root):
    workspace.refresh(root)
    copy = root / "my-work" / "02_scaling.ipynb"
    edit(copy)
    before = copy.read_bytes()
    assert workspace.refresh(root) == []
    assert copy.read_bytes() == before


def test_a_changed_chapter_leaves_the_learners_copy_alone_and_is_announced(root):
    workspace.refresh(root)
    copy = root / "my-work" / "exercises" / "02_scaling.ipynb"
    before = copy.read_bytes()
    write_notebook(root / "chapters" / "exercises" / "02_scaling.ipynb", "three")
    for _ in range(2):
        (message,) = workspace.refresh(root)
        assert message.startswith("exercises/02_scaling.ipynb has changed in the book")
        assert message.endswith("mha-teach reset exercises/02")
        assert copy.read_bytes() == before


def test_a_new_chapter_is_added_to_old_work(root):
    workspace.refresh(root)
    edit(root / "my-work" / "02_scaling.ipynb")
    write_notebook(root / "chapters" / "04_masks.ipynb")
    assert workspace.refresh(root) == ["Copied to my-work: 04_masks.ipynb"]
    assert first_cell(root / "my-work" / "02_scaling.ipynb") == "my own words"


def test_pages_and_figures_follow_the_book_unless_the_learner_changed_them(root):
    workspace.refresh(root)
    page, figure = root / "my-work/notation.md", root / "my-work/figures/heads.svg"
    page.write_text("my notes")
    (root / "chapters" / "notation.md").write_text("# Notation, second edition\n")
    (root / "chapters" / "figures" / "heads.svg").write_text("<svg>new</svg>")
    assert workspace.refresh(root) == []
    assert page.read_text() == "my notes"
    assert figure.read_text() == "<svg>new</svg>"


def test_a_page_follows_the_book_although_its_copy_is_not_the_same(root):
    page, copy = root / "chapters" / "notation.md", root / "my-work" / "notation.md"
    for edition in ("First", "Second", "Third"):
        page.write_text(f"---\ntitle: {edition}\n---\n")
        workspace.refresh(root)
        assert copy.read_text() == f"# {edition}\n"
    copy.write_text("my notes")
    page.write_text("---\ntitle: Fourth\n---\n")
    assert workspace.refresh(root) == []
    assert copy.read_text() == "my notes"


@pytest.mark.parametrize("record", [None, "{ half a recor", "null", "[]", "5"])
def test_work_survives_a_lost_or_broken_record(root, record):
    workspace.refresh(root)
    copy, page = root / "my-work/02_scaling.ipynb", root / "my-work/notation.md"
    edit(copy)
    figure = root / "my-work/figures/heads.svg"
    page.write_text("my notes")
    figure.write_text("<svg>mine</svg>")
    if record is None:
        (root / "my-work" / ".book.json").unlink()
    else:
        (root / "my-work" / ".book.json").write_text(record)
    write_notebook(root / "chapters" / "02_scaling.ipynb", "three")
    (root / "chapters" / "notation.md").write_text("# Notation, second edition\n")
    about_notebook, about_figure, about_page = workspace.refresh(root)
    assert first_cell(copy) == "my own words"
    assert about_notebook.startswith("It is not known whether you changed 02_scaling")
    assert about_notebook.endswith("mha-teach reset 02")
    kept = [
        root / about.rpartition("yours is kept: ")[2]
        for about in (about_figure, about_page)
    ]
    assert [path.read_text() for path in kept] == ["<svg>mine</svg>", "my notes"]
    old = root / "my-work" / "old"
    assert [path.parent for path in kept] == [old / "figures", old]
    assert page.read_text() == "# Notation, second edition\n"
    assert workspace.refresh(root) == []
    (root / "chapters" / "notation.md").write_text("# Notation, third edition\n")
    write_notebook(root / "chapters" / "02_scaling.ipynb", "four")
    (message,) = workspace.refresh(root)
    assert message.startswith("02_scaling.ipynb has changed in the book")
    assert page.read_text() == "# Notation, third edition\n"


def killed_after(root, monkeypatch, copies):
    """Refresh, and be killed where one more file would be put in its place."""
    replace, left = os.replace, [copies]

    def put(part, copy):
        if copy.name != ".book.json":
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
        replace(part, copy)

    with monkeypatch.context() as patch:
        patch.setattr(workspace.os, "replace", put)
        with pytest.raises(KeyboardInterrupt):
            workspace.refresh(root)


def second_edition(root, text="second"):
    for path in (root / "chapters").rglob("02_scaling.ipynb"):
        write_notebook(path, text)
    (root / "chapters" / "notation.md").write_text(f"# {text}\n")
    (root / "chapters" / "figures" / "heads.svg").write_text(f"<svg>{text}</svg>")


def test_a_killed_first_run_remembers_what_it_copied(root, monkeypatch):
    killed_after(root, monkeypatch, copies=4)  # all but notation.md
    second_edition(root)
    added, *changed = workspace.refresh(root)
    assert added == "Copied to my-work: figures and pages"
    names = [message.partition(" has changed in the book")[0] for message in changed]
    assert names == ["02_scaling.ipynb", "exercises/02_scaling.ipynb"]


def test_a_killed_update_freezes_no_page(root, monkeypatch):
    workspace.refresh(root)
    second_edition(root)
    killed_after(root, monkeypatch, copies=1)
    second_edition(root, "third")
    workspace.refresh(root)
    assert (root / "my-work" / "notation.md").read_text() == "# third\n"
    figure = root / "my-work" / "figures" / "heads.svg"
    assert figure.read_text() == "<svg>third</svg>"


def test_copies_as_the_book_has_them_are_known_without_a_record(root):
    workspace.refresh(root)
    (root / "my-work" / ".book.json").unlink()
    assert workspace.refresh(root) == []
    second_edition(root)
    told = workspace.refresh(root)
    assert ["has changed in the book" in message for message in told] == [True, True]
    assert (root / "my-work" / "notation.md").read_text() == "# second\n"


def test_a_copy_put_in_place_just_before_the_end_is_known(root, monkeypatch):
    workspace.refresh(root)
    second_edition(root)
    with monkeypatch.context() as patch:
        patch.setattr(workspace, "_remember", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            workspace.refresh(root)
    workspace.refresh(root)
    second_edition(root, "third")
    workspace.refresh(root)
    figure = root / "my-work" / "figures" / "heads.svg"
    assert figure.read_text() == "<svg>third</svg>"


def main(root):
    """Run the file, as `book.py lab` does."""
    (root / "mha_teach").mkdir()
    script = shutil.copy(workspace.__file__, root / "mha_teach")
    command = [sys.executable, "-P", script]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_file_run_by_itself_copies_and_says_so(root):
    ended = main(root)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("Copied to my-work: 02_scaling.ipynb, 11_")
    assert len(ended.stdout.splitlines()) == 1


@pytest.mark.parametrize("name", ["", "figures", "exercises"])
def test_a_file_in_the_way_is_named(root, name):
    path = root / "my-work" / name
    path.parent.mkdir(exist_ok=True)
    path.touch()
    ended = main(root)
    assert ended.returncode == 1
    (sentence,) = ended.stderr.splitlines()
    assert sentence.startswith("my-work cannot be written: ")
    assert str(path) in sentence
    assert sentence.endswith("then try again")


@pytest.mark.parametrize("name", [".book.json", "notation.md.part"])
def test_a_folder_in_the_way_is_named(root, name):
    (root / "my-work" / name).mkdir(parents=True)
    ended = main(root)
    assert ended.returncode == 1
    (sentence,) = ended.stderr.splitlines()
    assert str(root / "my-work" / name) in sentence


@pytest.mark.skipif(os.name == "nt", reason="links are for administrators there")
def test_a_link_to_nowhere_is_named(root):
    (root / "my-work").symlink_to(root / "gone")
    ended = main(root)
    assert ended.returncode == 1
    assert ended.stderr.startswith("my-work cannot be written: ")


@pytest.mark.parametrize("name", [".book.json", "02_scaling.ipynb.part", "old"])
def test_restore_touches_nothing_before_it_can_write(root, name):
    workspace.refresh(root)
    copy = root / "my-work" / "02_scaling.ipynb"
    edit(copy)
    (root / "my-work" / name).unlink(missing_ok=True)
    if name == "old":
        (root / "my-work" / name).touch()
    else:
        (root / "my-work" / name).mkdir()
    with pytest.raises(OSError, match=name):
        workspace.restore(root, "02")
    assert first_cell(copy) == "my own words"
    assert not (root / "my-work" / "02_scaling.ipynb.part").is_file()


@pytest.mark.parametrize("name", ["notation.md", "02_scaling.ipynb"])
def test_restore_keeps_a_folder_that_stands_where_the_file_belongs(root, name):
    workspace.refresh(root)
    before = in_my_work(root)
    copy = root / "my-work" / name
    copy.unlink()
    copy.mkdir()
    (copy / "mine.txt").touch()
    _, kept = workspace.restore(root, name)
    assert [path.name for path in kept.iterdir()] == ["mine.txt"]
    in_old = (kept / "mine.txt").relative_to(root / "my-work").as_posix()
    assert in_my_work(root) == before | {in_old}


@pytest.mark.parametrize("record", ["null", "[]", "5"])
def test_restore_makes_do_without_a_good_record(root, record):
    workspace.refresh(root)
    (root / "my-work" / ".book.json").write_text(record)
    edit(root / "my-work" / "02_scaling.ipynb")
    copy, kept = workspace.restore(root, "02")
    assert (first_cell(copy), first_cell(kept)) == ("# two", "my own words")


def test_restore_takes_the_books_version_and_keeps_the_learners(root):
    workspace.refresh(root)
    edit(root / "my-work" / "02_scaling.ipynb")
    write_notebook(root / "chapters" / "02_scaling.ipynb", "three")
    copy, kept = workspace.restore(root, "02")
    assert first_cell(copy) == "# three"
    assert first_cell(kept) == "my own words"
    assert kept.name.startswith("02_scaling.20")
    assert kept.parent == root / "my-work" / "old"
    assert workspace.refresh(root) == []


def test_restore_keeps_no_copy_that_is_as_the_book_has_it(root):
    workspace.refresh(root)
    before = in_my_work(root)
    copy, kept = workspace.restore(root, "02")
    assert (first_cell(copy), kept) == ("# two", None)
    assert in_my_work(root) == before


def run_and_save(path):
    """Do what JupyterLab does to a file when its notebook is run and saved."""
    notebook = nbformat.read(path, as_version=4)
    stream = new_output("stream", name="stdout", text="2\n")
    notebook.cells[1].outputs, notebook.cells[1].execution_count = [stream], 7
    notebook.metadata.language_info = {"name": "python"}
    nbformat.write(notebook, path)


def test_restore_keeps_no_copy_with_nothing_but_outputs_of_its_own(root):
    workspace.refresh(root)
    run_and_save(root / "my-work" / "02_scaling.ipynb")
    copy, kept = workspace.restore(root, "02")
    assert kept is None
    assert nbformat.read(copy, as_version=4).cells[1].outputs == []


def test_nothing_is_said_where_the_book_changed_its_outputs_alone(root):
    workspace.refresh(root)
    for path in ("chapters", "my-work"):
        run_and_save(root / path / "02_scaling.ipynb")
    assert workspace.refresh(root) == []


def add_a_tag(notebook):
    notebook.cells[1].metadata.tags = ["slide"]


def swap_cells(notebook):
    notebook.cells.reverse()


def add_a_cell(notebook):
    notebook.cells.append(new_markdown_cell("mine"))


@pytest.mark.parametrize("change", [add_a_tag, swap_cells, add_a_cell])
def test_restore_keeps_whatever_else_was_changed(root, change):
    workspace.refresh(root)
    copy = root / "my-work" / "02_scaling.ipynb"
    notebook = nbformat.read(copy, as_version=4)
    change(notebook)
    nbformat.write(notebook, copy)
    _, kept = workspace.restore(root, "02")
    assert nbformat.read(kept, as_version=4) == notebook


@pytest.mark.parametrize("text", ["", "my own words", "[]", "{}", '{"nbformat": 4}'])
def test_restore_keeps_what_is_no_notebook(root, text):
    workspace.refresh(root)
    copy = root / "my-work" / "02_scaling.ipynb"
    copy.write_text(text)
    fresh, kept = workspace.restore(root, "02")
    assert (first_cell(fresh), kept.read_text()) == ("# two", text)


@pytest.mark.parametrize("folder", ["", "exercises/"])
def test_a_number_needs_no_zero_before_it(root, folder):
    copy, _ = workspace.restore(root, f"{folder}2")
    assert copy == root / "my-work" / f"{folder}02_scaling.ipynb"


def test_restoring_twice_in_a_second_loses_nothing(root):
    workspace.refresh(root)
    kept = []
    for words in ("one", "two", "three"):
        edit(root / "my-work" / "exercises" / "02_scaling.ipynb", words)
        kept.append(workspace.restore(root, "exercises/02")[1])
    assert [first_cell(path) for path in kept] == ["one", "two", "three"]
    assert {path.parent for path in kept} == {root / "my-work" / "old" / "exercises"}


def test_restore_before_any_copy_exists_makes_one(root):
    copy, kept = workspace.restore(root, "11")
    assert copy == root / "my-work" / "11_what_heads_see.ipynb"
    assert first_cell(copy) == "# two"
    assert kept is None


def test_restore_takes_the_name_as_it_stands_in_the_folder_of_the_book(root):
    copy, _ = workspace.restore(root, "my-work/figures/heads.svg")
    assert copy == root / "my-work" / "figures" / "heads.svg"


def test_restore_of_an_unknown_notebook_names_those_there_are(root):
    with pytest.raises(ValueError, match="no notebook '99'.*: 02, 11, exercises/02$"):
        workspace.restore(root, "99")


@pytest.mark.parametrize("name", ["figures/heads.svg", "02_scaling.ipynb"])
def test_restore_takes_any_file_by_its_name(root, name):
    workspace.refresh(root)
    whole = (root / "my-work" / name).read_bytes()
    (root / "my-work" / name).write_bytes(whole[: len(whole) // 2])
    assert workspace.refresh(root) == []  # for all that is known, the learner cut it
    copy, kept = workspace.restore(root, name)
    assert copy.read_bytes() == whole
    assert kept.read_bytes() == whole[: len(whole) // 2]


@pytest.mark.parametrize(
    "name", ["02_scaling.py", "index.md", "../notes", "figures", ""]
)
def test_restore_takes_no_file_that_is_not_copied(root, name):
    with pytest.raises(ValueError, match="nor a file of this name"):
        workspace.restore(root, name)


@pytest.mark.parametrize("asked", ["", "my-work/", "exercises/"])
def test_no_number_is_not_chapter_0(root, asked):
    for folder in ("chapters", "chapters/exercises"):
        (second,) = (root / folder).glob("02_*.ipynb")
        second.rename(second.with_name("00_start.ipynb"))
    with pytest.raises(ValueError, match="there is no notebook .*: 00, 11, exercises"):
        workspace.restore(root, asked)


@pytest.fixture
def results(root, monkeypatch):
    """Results of a long run, in a learner's folder."""
    file = root / "chapters" / "artifacts" / "grid.json"
    file.parent.mkdir()
    file.write_text('{"cells": [1, 2]}')
    workspace.refresh(root)
    monkeypatch.chdir(root / "my-work")
    return Path("artifacts", "grid.json")


@pytest.mark.parametrize("folder", ["my-work", "my-work/old", "my-work/a/b"])
def test_results_are_read_from_the_folder_of_the_copies(
    root, results, monkeypatch, folder
):
    (root / folder).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(root / folder)
    assert workspace.artifact("grid.json") == {"cells": [1, 2]}


def test_results_are_read_where_the_book_itself_is_in_a_folder_of_this_name(
    tmp_path, monkeypatch
):
    file = tmp_path / "my-work" / "chapters" / "artifacts" / "grid.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"cells": []}')
    monkeypatch.chdir(file.parents[1])
    assert workspace.artifact("grid.json") == {"cells": []}


@pytest.mark.parametrize(
    "spoilt", [None, b"", b'{"cells": [1', b"\xff", b"[]", b"{}", b"null", b"[" * 99999]
)
@pytest.mark.parametrize(
    ("folder", "command"),
    [
        ("my-work", "mha-teach reset "),
        ("my-work/old", "mha-teach reset "),
        ("chapters", 'git checkout -- "'),
    ],
)
def test_results_that_cannot_be_read_say_how_to_bring_them_back(
    root, results, monkeypatch, spoilt, folder, command
):
    (root / "my-work" / "old").mkdir()
    spoilt_file = root / folder.removesuffix("/old") / results
    monkeypatch.chdir(root / folder)
    spoilt_file.unlink() if spoilt is None else spoilt_file.write_bytes(spoilt)
    with pytest.raises(OSError, match=r"grid\.json is missing or damaged \(") as raised:
        workspace.artifact("grid.json")
    _, way_out = str(raised.value).split(f": {command}")
    assert way_out.rstrip('"').endswith("artifacts/grid.json")
    if folder != "chapters":
        workspace.restore(root, way_out)
        assert workspace.artifact("grid.json") == {"cells": [1, 2]}


def test_results_are_read_in_the_folder_of_a_chapter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match=r"cannot be read in .*own folder, chapters/ or"):
        workspace.artifact("grid.json")


def test_chapters_read_results_with_the_one_that_says_how_to_bring_them_back():
    sources = [path.read_text("utf-8") for path in ROOT.glob("chapters/*.py")]
    named = re.findall(r'artifact\("(\w+\.json)"\)', "\n".join(sources))
    there = {path.name for path in ROOT.glob("chapters/artifacts/*.json")}
    assert set(named) == there
    assert not any("artifacts/" + name in text for name in there for text in sources)


def test_an_installation_without_the_book_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(workspace, "__file__", str(tmp_path / "pkg" / "workspace.py"))
    with pytest.raises(FileNotFoundError, match="no chapters folder in .*clone"):
        workspace.book_folder()


@pytest.mark.parametrize("paired", [False, True])
def test_saving_in_jupyterlab_writes_no_script_beside_a_copy(root, paired):
    shutil.copy(ROOT / "pyproject.toml", root)
    workspace.refresh(root)
    copy = root / "my-work" / "02_scaling.ipynb"
    if paired:  # as the book's notebook is: it has to be undone in the copy
        shutil.copy(root / "chapters" / "02_scaling.ipynb", copy)
    manager = TextFileContentsManager(root_dir=str(root))
    manager.save(manager.get("my-work/02_scaling.ipynb"), "my-work/02_scaling.ipynb")
    assert copy.with_suffix(".py").exists() == paired


def test_the_record_says_what_the_book_had(root):
    workspace.refresh(root)
    record = json.loads((root / "my-work" / ".book.json").read_text())
    assert set(record) == in_my_work(root) - {".book.json"}
