"""The learner's copies: made once, unpaired, and never lost."""

import json
import shutil
from pathlib import Path

import nbformat
import pytest
from jupytext.sync_contentsmanager import TextFileContentsManager
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from mha_teach import workspace

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


def test_everything_but_sources_and_checkpoints_is_copied(root):
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


@pytest.mark.parametrize("record", [None, "{ half a recor"])
def test_work_survives_a_lost_or_broken_record(root, record):
    workspace.refresh(root)
    copy, page = root / "my-work/02_scaling.ipynb", root / "my-work/notation.md"
    edit(copy)
    page.write_text("my notes")
    if record is None:
        (root / "my-work" / ".book.json").unlink()
    else:
        (root / "my-work" / ".book.json").write_text(record)
    write_notebook(root / "chapters" / "02_scaling.ipynb", "three")
    (root / "chapters" / "notation.md").write_text("# Notation, second edition\n")
    workspace.refresh(root)
    assert first_cell(copy) == "my own words"
    assert page.read_text() == "my notes"


def test_restore_takes_the_books_version_and_keeps_the_learners(root):
    workspace.refresh(root)
    edit(root / "my-work" / "02_scaling.ipynb")
    write_notebook(root / "chapters" / "02_scaling.ipynb", "three")
    copy, kept = workspace.restore(root, "02")
    assert first_cell(copy) == "# three"
    assert first_cell(kept) == "my own words"
    assert kept.name.startswith("02_scaling.20")
    assert workspace.refresh(root) == []


def test_restoring_twice_in_a_second_loses_nothing(root):
    workspace.refresh(root)
    kept = []
    for words in ("one", "two", "three"):
        edit(root / "my-work" / "exercises" / "02_scaling.ipynb", words)
        kept.append(workspace.restore(root, "exercises/02")[1])
    assert [first_cell(path) for path in kept] == ["one", "two", "three"]


def test_restore_before_any_copy_exists_makes_one(root):
    copy, kept = workspace.restore(root, "11")
    assert copy == root / "my-work" / "11_what_heads_see.ipynb"
    assert first_cell(copy) == "# two"
    assert kept is None


def test_restore_of_an_unknown_notebook_names_those_there_are(root):
    with pytest.raises(ValueError, match="no notebook '99'.*: 02, 11, exercises/02$"):
        workspace.restore(root, "99")


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
