"""Where a reader is asked to predict, no code in sight tells what will be seen.

The words for a picture would. So the drawing stands in a cell of its own, tagged
`figure`, whose code is folded; and as nobody reads that code, it only draws.
"""

import ast
import builtins
from itertools import pairwise

import nbformat
import pytest
from markdown_it import MarkdownIt

from tools import notebooks
from tools.notebooks import tags

SOURCES = notebooks.sources()


@pytest.fixture(params=SOURCES, ids=[f"{p.parent.name}/{p.stem}" for p in SOURCES])
def twin(request):
    return nbformat.read(request.param.with_suffix(".ipynb"), as_version=4)


def pictures(cell):
    """Return the alt text of each figure that a cell shows; explorers have a style."""
    shown = [output.get("data", {}) for output in cell.outputs]
    return [
        data["text/plain"]
        for data in shown
        if data.get("text/html", "").startswith("<figure><img ")
    ]


def is_asked(text, before):
    """Say whether a prediction is asked for at the end of a text."""
    for token in MarkdownIt().parse(text):
        if token.type == "heading_open":
            before = False
        for mark, words in pairwise(token.children or []):
            if mark.type == "strong_open" and words.content.startswith("Predict"):
                before = True
    return before


def answers(notebook):
    """Yield the code between a prediction and the text that follows its answer."""
    asked = answered = False
    for cell in notebook.cells:
        if cell.cell_type == "code":
            answered |= bool(cell.outputs)
            if asked:
                yield cell
        else:
            asked = is_asked(cell.source, before=asked and not answered)
            answered = False


def told(notebook):
    """Return the ids of cells that answer a prediction in words, in plain sight."""
    return [
        cell.id
        for cell in answers(notebook)
        if pictures(cell) and not tags(cell) & {"figure", "widget"}
    ]


def more_than_a_drawing(notebook):
    """Say what cells tagged `figure` do besides drawing."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    trees = [list(ast.walk(ast.parse(cell.source))) for cell in code]
    imports = (node for tree in trees for node in tree if hasattr(node, "names"))
    imported = {alias.asname or alias.name for node in imports for alias in node.names}
    return [
        f"{cell.id} {complaint}"
        for at, cell in enumerate(code)
        if "figure" in tags(cell)
        for complaint in [
            *not_drawing(cell, trees[at], imported),
            *needed_later(trees[at], trees[at + 1 :]),
        ]
    ]


def not_drawing(cell, tree, imported):
    """Say how a cell differs from one that lays out a figure and shows it."""
    if {type(each) for each in tree if isinstance(each, ast.stmt)} - {
        ast.Assign,
        ast.Expr,
        ast.For,
    }:
        yield "holds a statement that draws nothing"
    used = {each.id for each in tree if isinstance(each, ast.Name)} & imported
    if used != {"plots"}:
        yield f"uses {sorted(used)} of what is imported, not plots alone"
    functions = [each.func for each in tree if isinstance(each, ast.Call)]
    called = {each.id for each in functions if isinstance(each, ast.Name)}
    if called - set(dir(builtins)) or "print" in called:
        yield f"calls {sorted(called)}; compute and print in the cell before"
    constants = [each for each in tree if isinstance(each, ast.Constant)]
    alts = [each for each in constants if each.value in pictures(cell)]
    if not len(alts) == len(pictures(cell)) == len(cell.outputs) == 1:
        yield "does not show one figure, with its alt text in it"
    elif alts[0].lineno == 1 or "plots." not in cell.source.splitlines()[0]:
        yield "begins with a line, seen in JupyterLab, that names no plot or its alt"


def needed_later(tree, later):
    """Say which names of a figure a cell after it reads."""
    names = bound(tree)
    for other in later:
        read = {each.id for each in other if isinstance(each, ast.Name)} - bound(other)
        if names & read:
            yield f"binds {sorted(names & read)}, which a later cell reads"
        names -= bound(other)


def bound(tree):
    """Return the names that code binds."""
    names = {each.arg for each in tree if isinstance(each, ast.arg)}
    stored = (each for each in tree if isinstance(getattr(each, "ctx", 0), ast.Store))
    return names | {each.id for each in stored if isinstance(each, ast.Name)}


def test_no_code_in_sight_tells_the_answer(twin):
    assert told(twin) == []


def test_a_figure_cell_holds_nothing_but_the_drawing(twin):
    assert more_than_a_drawing(twin) == []


def test_the_code_of_a_figure_is_folded_and_its_picture_is_not(twin):
    for cell in twin.cells:
        if "figure" in tags(cell):
            assert cell.metadata.jupyter == {"source_hidden": True}, cell.id
            assert "collapsed" not in cell.metadata, cell.id


def test_some_predictions_are_answered_by_a_figure():
    twins = [nbformat.read(p.with_suffix(".ipynb"), as_version=4) for p in SOURCES]
    figures = [c for twin in twins for c in answers(twin) if "figure" in tags(c)]
    assert len(figures) >= 10


DRAWING = """figure = plots.curves(x, [plots.Panel("y", y)], "x")
for axes in figure.axes:
    axes.set_xticks(range(len(x)))
plots.show(
    figure,
    alt="A line "
    "that rises.",
)"""
ASKS = "## Where?\n\n> **Predict.** Up or down?"


def chapter(drawing=DRAWING, text=ASKS, tagged="figure", between=(), after="x"):
    """An executed chapter: imports, a text, code, a drawing, and code after it."""
    code, markdown = nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell
    alt = "A line that rises."
    data = {"text/html": f'<figure><img alt="{alt}"></figure>', "text/plain": alt}
    shown = nbformat.v4.new_output("display_data", data=data)
    figure = code(drawing, id="it", outputs=[shown], metadata={"tags": [tagged]})
    cells = [code("from mha_teach import plots\nimport torch"), markdown(text)]
    cells += [code("x = y = [1]\ndef f(): pass"), *between, figure, code(after)]
    return nbformat.v4.new_notebook(cells=cells)


def test_a_sound_chapter_is_not_complained_about():
    assert told(chapter()) == more_than_a_drawing(chapter()) == []


@pytest.mark.parametrize(
    "drawing",
    [
        DRAWING,
        "plots.show(plots.curves(x, [], 'x'), 'A line that rises.')",
        "from mha_teach.plots import show as s; s(x, 'A line that rises.')",
        "a = 'A line '\nb = 'that rises.'\ngetattr(plots, 'sh' + 'ow')(x, alt=a + b)",
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        ASKS,
        "**Predict**: up?",
        ">   __Predict__. Up?",
        "Words.\n\n> **Predict the\n> line.** Up?",
        f"## Another\n\n{ASKS}\n>\n> Choose.\n\nWords.",
    ],
)
def test_a_picture_drawn_in_sight_is_found(drawing, text):
    assert told(chapter(drawing, text, tagged="other")) == ["it"]


WORDS = nbformat.v4.new_markdown_cell("Words.")
HEADING = nbformat.v4.new_markdown_cell("## Another section")
PRINTS = nbformat.v4.new_code_cell(
    "print(1)", outputs=[nbformat.v4.new_output("stream", text="1\n")]
)


@pytest.mark.parametrize(
    ("text", "between", "found"),
    [
        ("Words, **Predictable** or not.\n\n## A section", [], []),
        ("> **Predict.** Up?\n\n## Another section", [], []),
        (ASKS, [HEADING], []),
        (ASKS, [PRINTS, WORDS], []),
        (ASKS, [PRINTS], ["it"]),
        (ASKS, [WORDS], ["it"]),
    ],
)
def test_a_prediction_waits_for_its_answer(text, between, found):
    assert told(chapter(text=text, between=between, tagged="other")) == found


@pytest.mark.parametrize(
    ("drawing", "complaint"),
    [
        (f"assert x  # plots.\n{DRAWING}", "holds a statement that draws nothing"),
        (f"g = lambda: plots.x\n{DRAWING}", "binds ['g'], which a later cell reads"),
        (f"plots.x\ndef h(): pass\n{DRAWING}", "holds a statement that draws nothing"),
        (f"f(plots.x)\n{DRAWING}", "calls ['f', 'len', 'range']; compute"),
        (f"print(plots.x)\n{DRAWING}", "calls ['len', 'print', 'range']; compute"),
        (f"plots.x(torch.ones(2))\n{DRAWING}", "uses ['plots', 'torch'] of what"),
        ("plots.show(x, alt=y)", "does not show one figure, with its alt text in it"),
        ("plots.show(x, 'A line that rises.')", "begins with a line, seen"),
        (f"z = x\n{DRAWING}", "begins with a line, seen in JupyterLab, that"),
    ],
)
def test_more_than_a_drawing_is_named(drawing, complaint):
    [found] = more_than_a_drawing(chapter(drawing, after="g"))
    assert found.startswith(f"it {complaint}")
