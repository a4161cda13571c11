"""The bug museum: stable, complete, linked, and fit to be taken home."""

import ast
import os
import re
import subprocess
import sys
from functools import partial

import jupytext
import pytest
import torch

from mha_teach import plots
from mha_teach.exercises import EXERCISES
from tools.claims import ROOT, slug
from tools.notebooks import tags

CHAPTERS = ROOT / "chapters"
NOTEBOOK = jupytext.read(CHAPTERS / "bug_museum.py")
CODE = [cell.source for cell in NOTEBOOK.cells if cell.cell_type == "code"]
TEXT = "\n".join(c.source for c in NOTEBOOK.cells if c.cell_type == "markdown")

# Every name in the code of a chapter's slips: its exhibit, or why it has none. Classes
# that the museum tries out without hanging them count, too.
RIGHT, HELPER = "the right one", "no slip"
SLIPS = {
    "01_soft_lookup": {},
    "02_scaling": {},
    "03_queries_keys_values": {
        "through_w_k": "ValuesByWK",
        "transposed": "Transposed",
        "over_queries": "OverQueries",
        "one_length": "OneLength",
        "checks": HELPER,
    },
    "04_masks": {
        "causal": RIGHT,
        "padding": RIGHT,
        "~causal": "Inverted",
        "nothing": "a mask of the caller, which the layer obeys",
        "padding.mT": "HidesQueries",
        "moved": HELPER,
    },
    "05_why_many_heads": {
        "side by side": RIGHT,
        "each through its block, added": RIGHT,
        "averaged": "Averaged",
        "both through one block, added": "Averaged",
        "two": HELPER,
    },
    "06_split_and_merge": {
        "split, merge": RIGHT,
        "recut": "Recut",
        "deal": "Deal",
        "collect": "Deal",
        "join": "Join",
        "swap": "Swap",
        "recut, merge": "Recut",
        "split, join": "Join",
        "recut, join": "RecutAndJoin",
        "deal, collect": "Deal",
        "swap, merge": "Swap",
        "input cut": "CutInput",
        "moved": HELPER,
        "checks": HELPER,
    },
    "08_heads_add_up": {
        "summed": RIGHT,
        "unmerged": "its shape is wrong",
        "a_bias_each": "ABiasEach",
        "repeated": "GateDealtOut",
        "on_the_scores": "GateOnScores",
        "checks": HELPER,
    },
}
NAMED_SLIPS = {"suspects", "joined"}  # dicts whose keys are the names of slips

IN_THE_BANK = {
    "OverQueries": ("07-mha", "Softmax runs over the queries."),
    "NotDivided": ("07-mha", "Scaling is a detail of training."),
    "ByDModel": ("07-mha", "Scores are divided by the root of d_model."),
    "Transposed": ("03-attention", "A row of scores belongs to a key."),
    "ValuesByWK": ("03-attention", "What is averaged are the keys."),
    "Inverted": ("04-attention", "True means masked."),
    "FilledWith0": ("04-attention", "A score of zero is no look."),
    "MaskedAfter": (
        "04-attention",
        "Forbidden weights can be set to zero after the softmax.",
    ),
    "HidesQueries": ("04-padding", "Padding hides the queries that are padding."),
    "MinusInfinity": ("04-attention", "Nan times zero is zero."),
    "Minus1e9": ("04-attention", "A very low score is as good as none."),
    "TopLeft": ("04-causal", "The triangle begins at the top left."),
    "Recut": ("06-split", "A reshape to the right shape is a split."),
    "Join": ("06-merge", "A reshape to the right shape is a merge."),
    "Swap": ("06-split", "Heads first or sentences first is all the same."),
    "Deal": ("06-split", "Head i takes every h-th column."),
    "Averaged": ("07-mha", "The heads are averaged."),
    "ABiasEach": ("08-bug", "Each head goes through all of out_proj, its bias too."),
    "GateDealtOut": ("08-gate", "The gates are repeated until they fit."),
}

# The code as given, in which a learner finds it.
GIVEN = {"RowsAsBlocks": "08-bug"}

IN_PUBLIC = {
    "OverQueries": "labmlai/annotated_deep_learning_paper_implementations #146",
    "ByDModel": "karpathy/ng-video-lecture #6",
    "ValuesByWK": "yflyzhang/AnnotatedTransformer #1",
    "Inverted": "rasbt/LLMs-from-scratch #1061",
    "FilledWith0": "georg-wolflein/good-features #1",
    "MaskedAfter": "ilivans/tf-rnn-attention #11",
    "HidesQueries": "hyunwoongko/transformer #40",
    "MinusInfinity": "#41508",
    "Minus1e9": "d2l-ai/d2l-en #2423",
    "TopLeft": "pytorch/pytorch #144858",
    "AnotherSentence": "line/lighthouse #77",
    "Recut": "reczoo/FuxiCTR #30",
    "Join": "jsbaan/transformer-from-scratch #4",
    "RecutAndJoin": "649453932/Chinese-Text-Classification-Pytorch #53",
    "Swap": "jadore801120/attention-is-all-you-need-pytorch #7",
    "CutInput": "MarcoMeter/episodic-transformer-memory-ppo #22",
    "Averaged": "awf/functional-transformer #8",
    "GateIgnored": "huggingface/transformers #35786",
    "AlwaysDrops": "pytorch/pytorch #124464",
}


@pytest.fixture(scope="module", autouse=True)
def _in_float64():
    """Bring back what the first cell of the museum changes for the whole process."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.fixture(scope="module")
def museum():
    """What the cells of the museum define, all of them run."""
    names = {"__name__": "museum"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "display", lambda *_, **__: None)
        for source in CODE:
            exec(source, names)
    return names


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_other_numbers_fill_the_same_cells_with_room_to_spare(museum, seed):
    torch.manual_seed(seed)
    x, x_new = torch.randn(2, 2, 5, 12)
    fresh = {"x": x, "x_new": x_new}
    fresh["new_tail"] = torch.cat([x[:, :3], x_new[:, 3:]], dim=1)
    slips = [slip for room in museum["rooms"].values() for slip in room]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in fresh.items():
            patch.setitem(museum, name, value)
        for tolerance in (1e-9, 1e-4):
            same = partial(torch.testing.assert_close, atol=tolerance, rtol=0)
            patch.setitem(museum, "same", same)
            found = {slip.__name__: museum["exposing"](slip) for slip in slips}
            assert found == museum["exposed_by"]
            assert not museum["exposing"](museum["MultiHeadAttention"])


def slips_of(chapter):
    """Return the names of the functions and named slips among a chapter's slips."""
    found, inside = set(), False
    for cell in jupytext.read(CHAPTERS / f"{chapter}.py").cells:
        if cell.cell_type != "code":
            for heading in re.findall(r"^## (.+)$", cell.source, re.M):
                inside = "ommon slips" in heading
        elif inside and "guard" not in tags(cell):
            found |= named(ast.parse(cell.source).body)
    return found


def named(statements):
    """Return the functions that statements define, and the keys of NAMED_SLIPS."""
    found = {each.name for each in statements if isinstance(each, ast.FunctionDef)}
    for each in statements:
        if isinstance(each, ast.Assign | ast.AugAssign):
            targets = [getattr(each, "target", None), *getattr(each, "targets", [])]
            names = {t.id for t in targets if isinstance(t, ast.Name)}
            if names & NAMED_SLIPS and isinstance(each.value, ast.Dict):
                found |= {key.value for key in each.value.keys}
    return found


@pytest.mark.parametrize("chapter", SLIPS)
def test_every_slip_of_a_chapter_hangs_or_is_told_why_not(museum, chapter):
    assert slips_of(chapter) == SLIPS[chapter].keys()
    for name, place in SLIPS[chapter].items():
        assert place in museum or " " in place, name


def test_every_exhibit_is_named_by_somebody(museum):
    """By a chapter's slips, by the bank, by an exercise, or by a public report."""
    told = {place for chapter in SLIPS.values() for place in chapter.values()}
    told |= IN_THE_BANK.keys() | GIVEN.keys() | IN_PUBLIC.keys()
    assert museum["exposed_by"].keys() <= told


@pytest.mark.parametrize("exhibit", IN_THE_BANK)
def test_an_exhibit_is_a_wrong_answer_of_the_bank(museum, exhibit):
    exercise, misconception = IN_THE_BANK[exhibit]
    assert exhibit in museum["exposed_by"]
    assert misconception in {each.misconception for each in EXERCISES[exercise].wrong}


def test_an_exhibit_is_what_an_exercise_gives(museum):
    """Its blocks are the same as those of the code to be mended."""
    head_outputs, out_proj = torch.randn(2, 3, 5, 4), torch.nn.Linear(12, 12)
    exhibit = museum["RowsAsBlocks"](12, 3)
    exhibit.out_proj = out_proj
    given = EXERCISES[GIVEN["RowsAsBlocks"]].given
    terms = given(head_outputs, out_proj.weight, out_proj.bias)
    torch.testing.assert_close(exhibit.combine(head_outputs), terms.sum(dim=1))


def test_most_exhibits_were_found_in_public(museum):
    references = (CHAPTERS / "references.md").read_text("utf-8")
    assert IN_PUBLIC.keys() <= museum["exposed_by"].keys()
    assert len(IN_PUBLIC) > len(museum["exposed_by"]) / 2
    for report in IN_PUBLIC.values():
        assert f"[{report}](https://github.com/" in references, report


def test_every_link_leads_to_a_heading_or_a_source():
    links = re.findall(r"\]\(([\w./]+)(?:#([\w-]+))?\)", TEXT)
    assert len(links) > 20
    for path, anchor in links:
        assert (CHAPTERS / path).is_file(), path
        if anchor:
            assert anchor in anchors(path), f"{path}#{anchor}"


def anchors(path):
    """Return the anchors of a page: its headings, and what stands before entries."""
    source = (CHAPTERS / path.replace(".ipynb", ".py")).read_text("utf-8")
    headings = re.findall(r"^(?:# )?##+ (.+)$", source, re.M)
    return {*map(slug, headings), *re.findall(r"^\(([\w-]+)\)=$", source, re.M)}


def defined_in(cell, names):
    """Return the text of the functions with these names in a cell."""
    functions = [n for n in ast.parse(cell).body if isinstance(n, ast.FunctionDef)]
    return [ast.get_source_segment(cell, n) for n in functions if n.name in names]


@pytest.mark.parametrize(
    ("layer", "fail"),
    [("MultiHeadAttention", 0), ("Broken", 1)],
)
def test_the_six_run_at_home(museum, tmp_path, layer, fail):
    """Three things copied and a fixture, as the last words of the museum say."""
    names = {f"test_{name}" for name in museum["needed"]}
    [drawing] = (cell for cell in CODE if cell.startswith("x, x_new"))
    [fixture] = re.findall(r"^```python\n(.+?)^```", TEXT, re.M | re.S)
    broken = (
        "class Broken(MultiHeadAttention):\n"
        "    def forward(self, query, key=None, value=None, mask=None, **kwargs):\n"
        "        return super().forward(query, key, value, **kwargs)"
    )
    six = [text for cell in CODE for text in defined_in(cell, names)]
    assert len(six) == 6
    parts = [CODE[0], drawing, *six, broken, fixture.replace("YourLayer", layer)]
    (tmp_path / "test_mine.py").write_text("\n\n".join(parts), "utf-8")
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", tmp_path]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_mine.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == fail, ended.stdout
    assert ("7 passed" in ended.stdout) == (not fail)
