"""Every notebook is the executed twin of its source, and fit to be committed."""

import ast
import os
import re

import jupytext
import nbformat
import pytest
from jupytext.compare import NotebookDifference, compare_notebooks

from tools import notebooks
from tools.notebooks import tags

SOURCES = notebooks.sources()
CHAPTERS = [path for path in SOURCES if path.parent.name == "chapters"]
MAY_IGNORE_OUTPUT = {"widget", "timing"}


def names(paths):
    return [path.stem for path in paths]


@pytest.fixture(params=SOURCES, ids=[f"{p.parent.name}/{p.stem}" for p in SOURCES])
def source(request):
    return request.param


@pytest.fixture
def twin(source):
    return nbformat.read(source.with_suffix(".ipynb"), as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_chapters():
    assert CHAPTERS


def test_no_notebook_lacks_a_source():
    twins = {path.with_suffix(".ipynb") for path in SOURCES}
    folder = notebooks.ROOT / "chapters"
    found = {
        path
        for path in folder.rglob("*.ipynb")
        if ".ipynb_checkpoints" not in str(path)
    }
    assert found == twins


def compare_cells(twin, source):
    expected = notebooks.unexecuted(source)
    expected.metadata = twin.metadata
    try:
        compare_notebooks(twin, expected, "py:percent", allow_expected_differences=True)
    except NotebookDifference as difference:
        remedy = f"run: python3 book.py notebooks {source.name[:2]}"
        raise NotebookDifference(f"{difference}\n{remedy}") from None


def test_twin_equals_its_source(source, twin):
    compare_cells(twin, source)


def test_a_changed_character_is_noticed(source, twin):
    twin.cells[-1].source += "!"
    remedy = rf"\nrun: python3 book\.py notebooks {source.name[:2]}$"
    with pytest.raises(NotebookDifference, match=remedy):
        compare_cells(twin, source)


def test_every_code_cell_was_executed_in_order(twin):
    counts = [cell.execution_count for cell in code_cells(twin)]
    assert counts == list(range(1, len(counts) + 1))


def test_outputs_are_fit_to_be_committed(twin):
    assert notebooks.complaints(twin) == []


def test_cell_ids_are_stable_and_unique(source, twin):
    expected = notebooks.unexecuted(source)
    assert [cell.id for cell in twin.cells] == [cell.id for cell in expected.cells]


def test_no_two_notebooks_share_a_cell_id():
    ids = [cell["id"] for path in SOURCES for cell in notebooks.unexecuted(path).cells]
    assert len(ids) == len(set(ids))


def test_ignored_output_is_a_widget_or_a_timing(twin):
    for cell in code_cells(twin):
        ignored = "nbval-ignore-output" in tags(cell)
        assert ignored == bool(tags(cell) & MAY_IGNORE_OUTPUT), cell.id


def test_ignored_outputs_are_few():
    ignored = [
        cell.id
        for path in SOURCES
        for cell in code_cells(jupytext.read(path))
        if "nbval-ignore-output" in tags(cell)
    ]
    assert len(ignored) <= len(SOURCES)


def test_code_is_plain_python_and_short(source, twin):
    for cell in code_cells(twin):
        assert not re.search(r"^\s*[%!]", cell.source, flags=re.M), cell.id
        lines = [line for line in cell.source.splitlines() if line.strip()]
        defines_a_class = any(
            isinstance(node, ast.ClassDef) for node in ast.parse(cell.source).body
        )
        assert len(lines) <= (25 if defines_a_class else 16), cell.id
        assert max(map(len, lines)) <= 88, cell.id


def test_markdown_renders_everywhere(twin):
    for cell in twin.cells:
        if cell.cell_type == "markdown":
            assert not re.search(r"^:::|^```\{|\{[a-z:]+\}`", cell.source, flags=re.M)


def test_no_item_of_a_list_stands_inside_a_line(twin):
    for cell in twin.cells:
        if cell.cell_type == "markdown":
            prose = re.sub(r"\$+[^$]+\$+|`[^`]+`", "", cell.source)
            assert not re.search(r"[^\s>] - \S", prose), cell.id


@pytest.mark.parametrize("source", CHAPTERS, ids=names(CHAPTERS))
def test_a_chapter_keeps_its_length(source):
    notebook = jupytext.read(source)
    words = sum(
        len(cell.source.split()) for cell in notebook.cells if cell.cell_type != "code"
    )
    assert words <= 1800
    in_sight = [c for c in code_cells(notebook) if not tags(c) & notebooks.FOLDED]
    assert 8 <= len(in_sight) <= 16


def output(**data):
    return nbformat.v4.new_output("display_data", data=data)


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (nbformat.v4.new_output("stream", name="stderr", text="tqdm"), "stderr: tqdm"),
        (output(**{notebooks.WIDGET_VIEW: {}}), "needs a kernel"),
        (output(**{"image/png": "iVBOR"}), "use plots.show"),
        (output(**{"text/plain": "see /home/reader/x.py"}), "path: /home/reader/x.py"),
        (output(**{"text/plain": "see C:\\Users\\reader"}), r"path: C:\\"),
        (output(**{"text/plain": "see C:/Users/reader"}), "path: C:/Users/reader"),
        (output(**{"text/plain": "see /opt/reader"}), "path: /opt/reader"),
        (output(**{"text/plain": "see /mnt/reader"}), "path: /mnt/reader"),
        (output(**{"text/plain": "see file:///srv/x"}), "path: file:///srv/x"),
    ],
)
def test_unfit_outputs_are_named(bad, complaint):
    cell = nbformat.v4.new_code_cell(outputs=[bad])
    found = notebooks.complaints(nbformat.v4.new_notebook(cells=[cell]))
    assert len(found) == 1
    assert complaint in found[0]


def test_a_relative_path_and_a_fraction_are_fit():
    cell = nbformat.v4.new_code_cell(
        outputs=[output(**{"text/plain": "chapters/home/a.py and 1/2"})]
    )
    assert notebooks.complaints(nbformat.v4.new_notebook(cells=[cell])) == []


def test_the_largest_cell_of_a_heavy_notebook_is_named():
    cells = [
        nbformat.v4.new_code_cell(outputs=[output(**{"text/plain": "x" * length})])
        for length in (170_000, 200_000, 180_000)
    ]
    (found,) = notebooks.complaints(nbformat.v4.new_notebook(cells=cells))
    assert re.fullmatch(
        f"cell {cells[1].id} is the largest of the notebook's 55\\d{{4}} bytes; "
        "the limit is 500000",
        found,
    )


def test_clean_drops_what_needs_a_kernel():
    view = output(**{notebooks.WIDGET_VIEW: {}, "text/html": "<figure></figure>"})
    cell = nbformat.v4.new_code_cell(outputs=[view], metadata={"execution": {}})
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"widgets": {}})
    notebooks.clean(notebook)
    assert set(notebook.cells[0].outputs[0].data) == {"text/html"}
    assert "widgets" not in notebook.metadata
    assert "execution" not in notebook.cells[0].metadata


def chapter(folder, code):
    """Write a source with one cell of this code."""
    path = folder / "01_small.py"
    path.write_text(f"# %%\n{code}\n", "utf-8")
    return path


def test_a_notebook_runs_in_its_folder_and_leaves_progress_alone(tmp_path, monkeypatch):
    mine = tmp_path / "progress.json"
    monkeypatch.setenv("MHA_TEACH_PROGRESS", str(mine))
    folder = tmp_path / "chapters"
    folder.mkdir()
    (folder / "data.txt").write_text("forty-one", "utf-8")
    source = chapter(
        folder,
        "import os\n"
        "from pathlib import Path\n"
        "Path(os.environ['MHA_TEACH_PROGRESS']).write_text('solved')\n"
        "print(Path('data.txt').read_text())",
    )
    twin = nbformat.read(notebooks.write(source), as_version=4)
    assert twin.cells[0].outputs[0].text == "forty-one\n"
    assert not mine.exists()


def test_a_raising_cell_is_named_in_one_line(tmp_path, monkeypatch):
    source = chapter(tmp_path, "[][2]")
    monkeypatch.setattr(notebooks, "sources", lambda prefix: [source])
    with pytest.raises(SystemExit) as stopped:
        notebooks.main([])
    assert stopped.value.code == (
        "01_small.py: cell ch-01-small-00 raised IndexError: list index out of range"
    )


def test_a_heavy_notebook_ends_the_run_and_its_twin_stays(tmp_path, monkeypatch):
    heavy = chapter(tmp_path, r"print(('x' * 99 + '\n') * 5_100)")
    twin = heavy.with_suffix(".ipynb")
    twin.write_text("the earlier one", "utf-8")
    never = tmp_path / "02_never_reached.py"
    monkeypatch.setattr(notebooks, "sources", lambda prefix: [heavy, never])
    with pytest.raises(SystemExit) as stopped:
        notebooks.main([])
    assert re.match(
        r"01_small\.py: not written\ncell ch-01-small-00 is the largest of the note",
        stopped.value.code,
    )
    assert twin.read_text("utf-8") == "the earlier one"


def test_a_cell_that_ends_the_kernel_is_named(tmp_path):
    source = chapter(tmp_path, "import os\nos._exit(1)")
    named = r"^01_small\.py: cell ch-01-small-00 did not end: "
    with pytest.raises(notebooks.NotebookError, match=named):
        notebooks.write(source)


@pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")
def test_ctrl_c_ends_in_one_line_and_the_twin_stays(tmp_path, monkeypatch, capfd):
    source = chapter(
        tmp_path,
        "import os, signal, time\nos.kill(os.getppid(), signal.SIGINT)\ntime.sleep(60)",
    )
    twin = source.with_suffix(".ipynb")
    twin.write_text("the earlier one", "utf-8")
    monkeypatch.setattr(notebooks, "sources", lambda prefix: [source])
    with pytest.raises(SystemExit) as stopped:
        notebooks.main([])
    assert stopped.value.code == 130
    said, errors = capfd.readouterr()
    assert said == "\nInterrupted; 01_small.ipynb is as it was.\n"
    assert "Traceback" not in errors
    assert twin.read_text("utf-8") == "the earlier one"


@pytest.mark.parametrize("in_the_way", ["01_small.ipynb", "01_small.ipynb.part"])
def test_a_folder_in_the_way_of_a_twin_is_named(tmp_path, in_the_way):
    source = chapter(tmp_path, "print(2)")
    (tmp_path / in_the_way).mkdir()
    (tmp_path / in_the_way / "file").touch()
    with pytest.raises(notebooks.NotebookError, match=rf"not written\n.*{in_the_way}"):
        notebooks.write(source)


def test_a_cell_that_writes_into_the_folder_is_refused(tmp_path):
    source = chapter(tmp_path, "_ = open('stray.txt', 'w').write('x')")
    with pytest.raises(notebooks.NotebookError, match=r"\nstray\.txt was written"):
        notebooks.write(source)
    assert not source.with_suffix(".ipynb").exists()


def test_a_start_that_no_chapter_has_is_named():
    with pytest.raises(SystemExit, match=r"no chapter starts with '\*'"):
        notebooks.main(["*"])
