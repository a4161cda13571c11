"""Code that a reader types stands below a folded cell, and is what is tested."""

import jupytext
import pytest

from conftest import ROOT
from tools.notebooks import tags

SLIPS = {
    "07_multi_head_attention": (
        "t.unflatten(-1, (self.h, self.d_k)).transpose(1, 2)",
        "t.reshape(len(t), self.h, -1, self.d_k)",
    ),
    "09_one_block": ("self.mlp_norm(x + self.mlp(x))", "self.mlp_norm(self.mlp(x))"),
}


@pytest.fixture(params=SLIPS)
def chapter(request):
    return request.param


@pytest.fixture
def run(chapter, in_chapters):
    """Run a chapter as far as its folded solution, what is typed, and two cells."""
    notebook = jupytext.read(ROOT / "chapters" / f"{chapter}.py")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    (at,) = [i for i, cell in enumerate(code) if "solution" in tags(cell)]

    def run(change=lambda source: source):
        typed = change(code[at].source)
        names = {"__name__": "chapter"}
        for source in [*(c.source for c in code[: at + 1]), typed]:
            exec(source, names)
        for cell in code[at + 1 : at + 3]:
            exec(cell.source, names)

    return run


def test_chapters_with_code_to_type_are_known():
    found = {
        path.stem
        for path in (ROOT / "chapters").glob("*.py")
        if any("solution" in tags(cell) for cell in jupytext.read(path).cells)
    }
    assert found == SLIPS.keys()


def test_what_is_typed_rightly_passes(run):
    run()


def test_what_is_typed_wrongly_fails(chapter, run):
    right, wrong = SLIPS[chapter]

    def slip(source):
        assert right in source
        return source.replace(right, wrong)

    with pytest.raises(AssertionError):
        run(slip)
