"""Explorers: what stands in the output, what they say, what they refuse."""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from functools import reduce
from html.parser import HTMLParser
from operator import getitem
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import widget_data
import widget_golden
from mha_teach import costs
from mha_teach.widgets import AttentionMap, Heads, Mask, OneQuery, _host

ROOT = Path(__file__).parents[1]
WIDGETS = ROOT / "mha_teach" / "widgets"
ARTIFACT = ROOT / "chapters" / "artifacts" / "heads_grid.json"
GRID = widget_data.heads_grid()


def heads(**choices) -> Heads:
    return Heads(GRID, **{"num_heads": 2, "d_k": 13} | choices)


def attention_map(**choices) -> AttentionMap:
    weights = widget_data.weights(3, 2, 7, 7)
    return AttentionMap(weights, widget_data.CHINESE, **choices)


def one_query(**choices) -> OneQuery:
    return OneQuery(widget_data.KEYS, labels=widget_data.KEY_NAMES, **choices)


def mask(**choices) -> Mask:
    return Mask(widget_data.MASK, widget_data.CHINESE, **choices)


@pytest.fixture(params=[heads, attention_map, one_query, mask])
def explorer(request):
    return request.param()


class Page(HTMLParser):
    """The tags of a page, the attributes of the first of each, and all text."""

    def __init__(self, html: str):
        super().__init__()
        self.tags, self.first, self.text = [], {}, ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.first.setdefault(tag, dict(attrs))

    def handle_data(self, data):
        self.text += data


def html_of(explorer) -> str:
    return explorer._repr_mimebundle_()["text/html"]


def static_part(explorer) -> Page:
    return Page(html_of(explorer).partition("<script")[0])


# ---- the output


def test_output_is_html_and_the_sentence_and_no_widget(explorer):
    bundle = explorer._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"] == explorer.sentence()


def test_without_scripts_figure_caption_and_table_remain(explorer):
    page = static_part(explorer)
    assert page.tags.count("img") == 1
    assert "svg" not in page.tags
    image = page.first["img"]
    assert image["src"].startswith("data:image/svg+xml;base64,")
    assert image["alt"] == explorer.alt()
    assert explorer.sentence() in page.text
    assert {"figcaption", "details", "table", "caption"} <= set(page.tags)


def test_alternative_text_names_numbers_of_the_picture():
    weights = heads().look().weights
    on_b = weights[1, widget_data.POINTERS[1]]
    assert f"head 1: {weights[1, widget_data.POINTERS[0]]:.2f} on a" in heads().alt()
    assert f"{on_b:.2f} on b" in heads().alt()
    assert "7 queries in rows" in attention_map().alt()


def test_picture_is_valid_xml_on_white_paper(explorer):
    src = static_part(explorer).first["img"]["src"]
    svg = base64.b64decode(src.partition(",")[2]).decode()
    paper = ElementTree.fromstring(svg)[0]
    assert paper.attrib["fill"] == "#ffffff"
    assert svg == explorer.picture()


def test_state_is_json_that_python_reads_back(explorer):
    html = html_of(explorer)
    text = re.search(r'<script type="application/json">(.*?)</script>', html)[1]
    assert "\n" not in text
    assert json.loads(text) == json.loads(json.dumps(explorer.state()))
    assert set(explorer.choices) < set(explorer.state())


def test_hostile_labels_stay_text():
    label = "</script><img src=x onerror=alert(1)>"
    labels = [label, "<!--", "&", '"', "b"]
    html = html_of(AttentionMap(widget_data.weights(5, 5), labels))
    assert label not in html
    page = Page(html)
    assert page.tags.count("img") == 1
    assert label in page.text


def test_nothing_is_fetched_and_no_id_can_clash(explorer):
    html = html_of(explorer)
    assert set(re.findall(r"https?://[^\"'`\s]+", html)) == {
        "http://www.w3.org/2000/svg"
    }
    assert not re.search(r"\bid=", html)


def test_same_bytes_in_every_run():
    code = (
        "import hashlib, test_widgets as t\n"
        "pages = [t.html_of(t.heads()), t.html_of(t.attention_map())]\n"
        "print([hashlib.sha256(page.encode()).hexdigest() for page in pages])"
    )
    runs = {python(code, PYTHONHASHSEED=seed) for seed in ("0", "7")}
    assert len(runs) == 1


def python(code: str, **environment: str) -> str:
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_same_bytes_whatever_the_order_of_the_grid():
    grid = dict(reversed(GRID.items()))
    assert html_of(Heads(grid, d_k=13)) == html_of(heads())


def test_key_follows_the_module_not_the_data():
    keys = {
        Page(html_of(heads(num_heads=h))).first["figure"]["data-mha"] for h in (1, 2)
    }
    assert len(keys) == 1
    assert keys != {Page(html_of(attention_map())).first["figure"]["data-mha"]}


@pytest.mark.parametrize("kind", [Heads, AttentionMap, OneQuery, Mask])
def test_module_is_small_and_self_contained(kind):
    source = _host.module(kind.parts)
    assert len(source.encode()) <= 42_000
    assert "export default { render };" in source
    assert not re.search(r"^import\b", source, flags=re.M)
    assert not re.search(r"^(import|export)\b", _host.inline(source), flags=re.M)


def test_inline_refuses_what_nothing_could_resolve():
    with pytest.raises(
        ValueError, match=r"self-contained, found 'import x from \"y\";'"
    ):
        _host.inline('import x from "y";\nexport default { render };\n')


def test_inline_keeps_the_script_tag_open():
    text = _host.inline("const a = '</script><!--';\n")
    assert text == "const a = '<\\/script><\\!--';\n"


# ---- JavaScript


@pytest.fixture
def node() -> str:
    path = shutil.which("node")
    if path is None and "CI" not in os.environ:
        pytest.skip(
            "node is not installed; the JavaScript of the explorers is not tested"
        )
    assert path, "node is not installed"
    return path


def test_golden_file_is_what_python_says_now():
    assert widget_golden.PATH.read_text(encoding="utf-8") == widget_golden.written(), (
        "run `python tests/widget_golden.py` if the change is meant"
    )


def test_javascript_agrees_with_the_golden_file(node):
    files = sorted(map(str, (ROOT / "tests" / "js").glob("*.test.mjs")))
    assert len(files) == 6
    run = subprocess.run([node, "--test", *files], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("kind", [Heads, AttentionMap, OneQuery, Mask])
def test_joined_module_declares_no_name_twice(kind, node, tmp_path):
    file = tmp_path / "module.mjs"
    file.write_text(_host.module(kind.parts), encoding="utf-8")
    run = subprocess.run([node, "--check", file], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_inlined_script_parses_as_a_module(explorer, node, tmp_path):
    script = html_of(explorer).partition('<script type="module">')[2]
    file = tmp_path / "inline.mjs"
    file.write_text(script.removesuffix("</script>"), encoding="utf-8")
    run = subprocess.run([node, "--check", file], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_a_figure_starts_once(node):
    # Two outputs of one module on a page: the second script finds both figures.
    figure = '{ dataset: {}, querySelector: () => ({ textContent: "{}" }), '
    figure += "querySelectorAll: () => [] }"
    script = (
        f"const figure = {figure};\nconst document = "
        "{ querySelectorAll: () => [figure] };\nlet started = 0;\n"
        "const render = () => { started += 1; };\n"
        f"{{ {_host._START} }}\n{{ {_host._START} }}\n"
        "console.log(figure.dataset.state, started);"
    )
    run = subprocess.run([node, "-e", script], capture_output=True, text=True)
    assert run.stdout == "live 1\n", run.stderr


# ---- choices


@pytest.mark.parametrize("as_whole", [np.int64, np.int32, np.array, torch.tensor])
def test_whole_numbers_of_any_library_are_choices(as_whole):
    few = {"num_heads": 2, "d_k": 13, "selected_head": 1, "selected_key": 6}
    same = heads(**{name: as_whole(value) for name, value in few.items()})
    assert html_of(same) == html_of(heads(**few))
    few = {"layer": 2, "head": 1, "selected_query": 3}
    same = attention_map(**{name: as_whole(value) for name, value in few.items()})
    assert html_of(same) == html_of(attention_map(**few))
    assert same.live().selected_query == 3


def test_a_truth_value_of_numpy_is_a_choice():
    same = attention_map(hide_special=np.True_)
    assert html_of(same) == html_of(attention_map(hide_special=True))


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("Heads", "num_heads", True),
        ("Heads", "d_k", "13"),
        ("Heads", "selected_key", 1.0),
        ("AttentionMap", "layer", None),
        ("AttentionMap", "head", False),
        ("AttentionMap", "selected_query", np.True_),
    ],
)
def test_a_choice_is_a_whole_number(users, kind, name, value):
    data = {"Heads": (GRID,), "AttentionMap": (np.eye(2), ["a", "b"])}[kind]
    message = f"{name} must be an int, got {value!r}; pass a whole number"
    with pytest.raises(TypeError, match=re.escape(message)):
        getattr(users, kind)(*data, **{name: value})


@pytest.mark.parametrize("value", [1, "no", None])
def test_hide_special_is_a_truth_value(users, value):
    message = rf"hide_special must be a bool, got {value!r}; pass True or False"
    with pytest.raises(TypeError, match=message):
        users.AttentionMap(np.eye(2), ["a", "b"], hide_special=value)


# ---- Heads


def test_costs_are_those_of_the_package():
    n = len(widget_data.TOKENS) + 1
    for h, d_k in [(1, 2), (2, 13), (11, 2)]:
        widths = {"d_k": d_k, "d_v": widget_data.D_V}
        assert heads().costs(h, d_k) == (
            costs.parameters(17, h, bias=False, **widths),
            costs.forward_flops(17, h, n, **widths),
            costs.score_bytes(h, n),
        )


def test_table_lists_every_setting_with_its_cost():
    text = heads().table()
    assert text.count("<tr>") == 1 + len(GRID["cells"])
    assert f"<td>{costs.parameters(17, 11, d_k=13, d_v=3, bias=False):,}</td>" in text


def test_weights_are_the_softmax_of_scaled_products():
    explorer = heads()
    look = explorer.look()
    cell = explorer.cell(2, 13)
    q, k = (
        torch.from_numpy(
            np.frombuffer(base64.b64decode(cell[name]), "<f2").copy()
        ).double()
        for name in "qk"
    )
    scores = (k.view(2, 8, 13) @ q.view(2, 13, 1)).squeeze(-1) / 13**0.5
    np.testing.assert_allclose(look.scores, scores, atol=1e-12)
    np.testing.assert_allclose(look.weights, torch.softmax(scores, -1), atol=1e-12)


def test_sentence_compares_with_the_same_width():
    assert heads(d_k=2).sentence() == (
        "2 heads of width 2: both letters right in 75 % of cases, "
        "from 50 % to 99 % over 5 runs; 1 head of the same width: 15 %."
    )
    assert heads(num_heads=1).sentence() == (
        "1 head of width 13: both letters right in 15 % of cases, "
        "from under 1 % to 30 % over 5 runs; 2 heads of the same width: 75 %."
    )
    assert "100 % of cases, in each of 5 runs" in heads(num_heads=11).sentence()


def test_number_followed_first_is_that_of_the_first_pointer():
    assert heads().selected_key == widget_data.POINTERS[0]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"num_heads": 3}, r"num_heads=3 does not exist here; choose from 1, 2, 11"),
        ({"d_k": 4}, r"d_k=4 does not exist here; choose from 2, 13"),
        ({"selected_head": 2}, r"selected_head=2 does not .* choose from 0 to 1"),
        ({"selected_head": -1}, r"selected_head=-1 does not .* choose from 0 to 1"),
        ({"selected_key": 8}, r"selected_key=8 does not .* choose from 0 to 7"),
    ],
)
def test_heads_refuses_a_choice_that_does_not_exist(choices, message):
    with pytest.raises(ValueError, match=message):
        heads(**choices)


def test_heads_refuses_another_mapping():
    with pytest.raises(
        ValueError, match=r"grid has no example, task; pass the content of"
    ):
        Heads({"cells": {}})


@pytest.mark.parametrize("grid", [None, ["task", "example", "cells"], 3])
def test_heads_refuses_what_is_no_mapping(users, grid):
    message = f"grid must be a mapping, got {grid!r}; pass the content of"
    with pytest.raises(ValueError, match=re.escape(message)):
        users.Heads(grid)


NOT_FINITE = [widget_data.half(np.full(26, x)) for x in (np.nan, np.inf)]
WRONG_FIELDS = [
    ("task", None, "grid['task'] must be a mapping, got None"),
    ("task.positions", ..., "grid['task'] has no positions"),
    ("task.positions", "7", "grid['task']['positions']='7' is not a whole number from"),
    ("task.d_model", "<img src=x>", "grid['task']['d_model']='<img src=x>' is not a"),
    ("task.d_v", 0, "grid['task']['d_v']=0 is not a whole number from 1"),
    ("task.steps", True, "grid['task']['steps']=True is not a whole number from 1"),
    ("task.symbols", [], "grid['task']['symbols']=[] is not a list of one or more"),
    ("task.symbols", [1], "grid['task']['symbols']=[1] is not a list of one or more"),
    ("task.guess", "<b>", "grid['task']['guess']='<b>' is not a number from 0 to 1"),
    ("example.tokens", [5], "['tokens']=[5] is not a list of 7, each a whole number"),
    ("example.pointers", [0, 7], "['pointers']=[0, 7] is not a list of 2, each a"),
    ("example.answer", [0, 11], "['answer']=[0, 11] is not a list of 2, each a whole"),
    ("cells", {}, "grid['cells'] is empty"),
    ("cells.h2_dk13", ..., "grid['cells'] has no h2_dk13"),
    ("cells.h2_dk13", None, "grid['cells']['h2_dk13'] must be a mapping, got None"),
    ("cells.h2_dk13.q", ..., "grid['cells']['h2_dk13'] has no q"),
    ("cells.h2_dk13.num_heads", 11, "['h2_dk13'] has num_heads=11 and d_k=13"),
    ("cells.h2_dk13.d_k", 13.0, "['h2_dk13']['d_k']=13.0 is not a whole number"),
    ("cells.h2_dk13.accuracy", [0.5, 1.1], "['accuracy']=[0.5, 1.1] is not a list of"),
    ("cells.h2_dk13.accuracy", [-0.1], "['accuracy']=[-0.1] is not a list of one or"),
    ("cells.h2_dk13.shown_seed", "<b>", "['shown_seed']='<b>' is not a whole number"),
    ("cells.h2_dk13.q", "!", "['h2_dk13']['q']='!' is not base64 of 26 finite"),
    ("cells.h2_dk13.q", "AAA", "['h2_dk13']['q']='AAA' is not base64 of 26 finite"),
    ("cells.h2_dk13.q", None, "['h2_dk13']['q']=None is not base64 of 26 finite"),
    *(("cells.h2_dk13.q", x, "is not base64 of 26 finite half-") for x in NOT_FINITE),
    ("cells.h2_dk13.q", GRID["cells"]["h1_dk13"]["q"], "is not base64 of 26 finite"),
    ("cells.h2_dk13.k", "AAA=", "['k']='AAA=' is not base64 of 208 finite half-"),
    ("cells.h2_dk13.v", "AAA=", "['v']='AAA=' is not base64 of 48 finite half-"),
    ("cells.h2_dk13.probabilities", "", "['probabilities']='' is not base64 of 22"),
]


@pytest.mark.parametrize(("path", "value", "message"), WRONG_FIELDS)
def test_heads_names_the_field_that_is_wrong(path, value, message):
    grid = json.loads(json.dumps(GRID))
    *way, last = path.split(".")
    record = reduce(getitem, way, grid)
    record[last] = value
    if value is ...:
        del record[last]
    with pytest.raises(ValueError, match=f"{re.escape(message)}.*; pass the content"):
        Heads(grid, d_k=13)


def test_a_letter_that_no_picture_may_hold_gives_way():
    symbols = [f"{letter}\x1b" for letter in widget_data.SYMBOLS]
    grid = GRID | {"task": GRID["task"] | {"symbols": symbols}}
    text = ElementTree.fromstring(Heads(grid, d_k=13).picture())
    assert "F\ufffd" in [word.text for word in text]


def test_shipped_grid_is_within_its_budget():
    assert len(json.dumps(Heads(json.loads(ARTIFACT.read_text())).state())) <= 200_000


# ---- AttentionMap


def test_weights_are_kept_to_within_half_a_step():
    weights = widget_data.weights(3, 2, 7, 7)
    explorer = AttentionMap(weights, widget_data.CHINESE, layer=1, head=1)
    shown, _ = explorer.rows(1)
    assert np.abs(shown - weights[1, 1]).max() <= 1 / 510


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_two_three_and_four_axes(rank):
    weights = widget_data.weights(3, 2, 7, 7)
    explorer = AttentionMap(weights[(0,) * (4 - rank)], widget_data.CHINESE)
    where = {2: "“[CLS]”", 3: "Head 0: “[CLS]”", 4: "Layer 0, head 0: “[CLS]”"}
    assert explorer.sentence().startswith(where[rank])
    assert explorer.rows(0)[0].shape == (7, 7)
    assert ("mean over 2 heads" in explorer.sentence()) == (rank > 2)


def test_tensors_of_any_kind_and_lists_of_layers():
    array = widget_data.weights(3, 2, 7, 7)
    tensor = torch.from_numpy(array).requires_grad_()
    expected = AttentionMap(array, widget_data.CHINESE).weights
    for same in (tensor, list(tensor), tensor.float()):
        got = AttentionMap(same, widget_data.CHINESE).weights
        assert (got == expected).all()
    rough = AttentionMap(tensor.bfloat16(), widget_data.CHINESE).weights
    assert np.abs(rough.astype(int) - expected).max() <= 1


def test_query_and_key_labels_go_to_their_axis():
    weights = np.zeros((7, 5))
    weights[3, 1] = 1
    explorer = AttentionMap(
        weights, widget_data.CHINESE, widget_data.ENGLISH, selected_query=3
    )
    assert explorer.sentence() == "“进” gives 1.00 to “the”."
    rows = ElementTree.fromstring(explorer.table()).findall("tbody/tr")
    assert [cell.text for cell in rows[3]] == [
        "进",
        "0.00",
        "1.00",
        "0.00",
        "0.00",
        "0.00",
    ]


def test_hidden_special_tokens_are_said_and_the_rest_adds_up():
    explorer = attention_map(selected_query=4, hide_special=True)
    weights, left = explorer.rows(0)
    assert weights.shape == (5, 5)
    np.testing.assert_allclose(weights.sum(-1), 1)
    kept = widget_data.weights(3, 2, 7, 7)[0, 0, 4, 1:6].sum()
    assert left[3] == pytest.approx(kept, abs=5 / 510)
    said = f"the {left[3]:.2f} of its weight that is left is scaled up to 1."
    assert explorer.sentence().endswith(said)
    assert "[CLS]" not in explorer.table()


def test_row_that_gives_all_its_weight_to_special_tokens():
    weights = np.zeros((7, 7))
    weights[:, 0] = 1
    explorer = AttentionMap(
        weights, widget_data.CHINESE, selected_query=2, hide_special=True
    )
    assert "“没” gives no weight to the tokens shown." in explorer.sentence()
    assert not explorer.rows(0)[0].any()


def test_selected_query_that_is_hidden_gives_way_to_the_first_shown():
    explorer = attention_map(selected_query=6, hide_special=True)
    assert "“球” gives" in explorer.sentence()


def test_what_counts_as_special_can_be_chosen():
    explorer = attention_map(hide_special=True, special_tokens=("球", "网"))
    assert explorer.visible()[0] == [0, 2, 3, 5, 6]


def test_every_token_is_special():
    with pytest.raises(ValueError, match=r"hide_special=True does not exist here"):
        AttentionMap(np.eye(2), ["[CLS]", "[SEP]"], hide_special=True)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((7,), r"shape \(7,\): the query axis is missing; expected \(n_q, n_k\)"),
        (
            (1, 3, 2, 7, 7),
            r"an axis too many .* choose one sentence .* weights\[:, 0\]",
        ),
        ((0, 7), r"shape \(0, 7\); pass queries to show, not 0"),
        (
            (65, 7),
            r"weights has 65 queries, more than 64; pass weights\[\.\.\., :64, :\]",
        ),
        ((7, 65), r"weights has 65 keys, more than 64; pass weights\[\.\.\., :64\]"),
        ((17, 7, 7), r"17 heads, more than 16; pass weights\[\.\.\., :16, :, :\]"),
        ((13, 2, 7, 7), r"weights has 13 layers, more than 12; pass weights\[:12\]"),
        ((12, 16, 61, 31), r"363,072 entries, more than 150,000; .* weights\[:4\]"),
    ],
)
def test_shapes_that_do_not_fit(shape, message):
    tokens = ["a"] * (shape[-2] if len(shape) > 1 else 7)
    with pytest.raises(ValueError, match=message):
        AttentionMap(np.zeros(shape), tokens, ["b"] * shape[-1])


@pytest.mark.parametrize(
    ("n_q", "n_k", "labels", "message"),
    [
        (7, 7, (5, None), r"tokens has 5 labels, but weights has 7 queries; pass one"),
        (7, 5, (7, 7), r"key_tokens has 7 labels, but weights has 5 keys; pass one"),
        (7, 5, (7, None), r"7 queries and 5 keys; pass key_tokens, the 5 tokens"),
    ],
)
def test_labels_that_do_not_fit(n_q, n_k, labels, message):
    tokens, key_tokens = (None if n is None else ["a"] * n for n in labels)
    with pytest.raises(ValueError, match=message):
        AttentionMap(widget_data.weights(n_q, n_k), tokens, key_tokens)


@pytest.mark.parametrize("shape", [(12, 16, 64, 64), (12, 16, 61, 31), (3, 13, 64, 61)])
def test_the_number_of_layers_to_pass_fits(shape):
    weights, labels = np.zeros(shape), (["a"] * shape[2], ["b"] * shape[3])
    with pytest.raises(ValueError, match=r"such as weights\[:\d+\]") as caught:
        AttentionMap(weights, *labels)
    layers = int(re.search(r"weights\[:(\d+)\]", str(caught.value))[1])
    AttentionMap(weights[:layers], *labels)
    with pytest.raises(ValueError, match=r"such as weights"):
        AttentionMap(weights[: layers + 1], *labels)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([5, 7], "[0] must be a str, got 5; pass words, such as list(map(str, "),
        (["a", None], "[1] must be a str, got None; pass words"),
        (b"ab", "[0] must be a str, got 97; pass words"),
        (torch.tensor([5, 7]), "[0] must be a str, got tensor(5); pass words"),
    ],
)
@pytest.mark.parametrize("name", ["tokens", "key_tokens"])
def test_labels_are_words(users, name, labels, message):
    with pytest.raises(TypeError, match=re.escape(name + message)):
        users.AttentionMap(np.eye(2), **{"tokens": ["a", "b"]} | {name: labels})


def test_no_labels_at_all(users):
    message = r"tokens must be a list of str, got None; pass words in their order"
    with pytest.raises(TypeError, match=message):
        users.AttentionMap(np.eye(2), None)


@pytest.mark.parametrize("name", ["\0", "\x1b", "\x0b", "\ud800", "\ufffe"])
def test_a_character_that_no_picture_may_hold_gives_way(name):
    explorer = AttentionMap(np.eye(2), [f"x{name}y", "b"], title=f"why{name}")
    text = ElementTree.fromstring(explorer.picture().encode())
    assert "x\ufffdy" in [word.text for word in text]
    html_of(explorer).encode()
    assert explorer.sentence().startswith("“x\ufffdy” gives")
    assert explorer.data()["map"]["title"] == "why\ufffd"


@pytest.mark.parametrize("value", [-3.25, 1.5, float("inf")])
def test_scores_are_not_weights(value):
    weights = widget_data.weights(7, 7)
    weights[2, 3] = value
    message = (
        rf"between 0 and 1, found {value:.3g}; .* after the softmax, not the scores"
    )
    with pytest.raises(ValueError, match=message):
        AttentionMap(weights, widget_data.CHINESE)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"layer": 3}, r"layer=3 does not exist here; choose from 0 to 2"),
        ({"head": 2}, r"head=2 does not exist here; choose from 0 to 1"),
        ({"selected_query": 7}, r"selected_query=7 does not .* choose from 0 to 6"),
    ],
)
def test_map_refuses_a_choice_that_does_not_exist(choices, message):
    with pytest.raises(ValueError, match=message):
        attention_map(**choices)


def test_largest_map_is_within_the_budget():
    weights = widget_data.weights(2, 16, 64, 64)
    state = AttentionMap(weights, [f"t{i}" for i in range(64)]).state()
    assert len(json.dumps(state)) <= 200_000


# ---- live


def test_live_output_holds_the_widget_and_the_static_figure(explorer):
    bundle, _ = explorer.live()._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/html"] == html_of(explorer)
    assert bundle["text/plain"] == explorer.sentence()


def test_live_choices_can_be_read_set_and_observed():
    widget = heads().live()
    seen = []
    widget.observe(lambda change: seen.append((change.name, change.new)))
    widget.num_heads = 11
    widget.selected_head = 7
    assert seen == [("num_heads", 11), ("selected_head", 7)]
    assert widget._repr_mimebundle_()[0]["text/plain"] == heads(num_heads=11).sentence()


def test_fewer_heads_keep_a_selected_head():
    widget = heads(num_heads=11, selected_head=7).live()
    widget.num_heads = 2
    assert widget.selected_head == 1


def test_live_takes_a_whole_message_from_the_page():
    widget = heads(num_heads=11, selected_head=7).live()
    widget.set_state({"num_heads": 1, "d_k": 2, "selected_head": 0, "selected_key": 6})
    assert (widget.num_heads, widget.d_k, widget.selected_head) == (1, 2, 0)


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        (heads, "num_heads", 3),
        (heads, "selected_head", 2),
        (attention_map, "layer", 3),
        (attention_map, "selected_query", -1),
    ],
)
def test_live_refuses_what_the_explorer_refuses(make, name, value):
    widget = make().live()
    before = getattr(widget, name)
    with pytest.raises(ValueError, match=rf"{name}={value} does not exist here"):
        setattr(widget, name, value)
    assert getattr(widget, name) == before


def test_live_map_shares_its_choices():
    widget = attention_map().live()
    widget.hide_special = True
    widget.layer, widget.head, widget.selected_query = 2, 1, 4
    expected = attention_map(layer=2, head=1, selected_query=4, hide_special=True)
    assert widget._repr_mimebundle_()[0]["text/plain"] == expected.sentence()


@pytest.mark.parametrize(
    ("make", "name"), [(heads, "selected_head"), (attention_map, "head")]
)
def test_live_refuses_a_truth_value_for_a_number(make, name):
    widget = make().live()
    with pytest.raises(TypeError, match=rf"{name} must be an int, got True"):
        setattr(widget, name, True)
    assert getattr(widget, name) == 0


@pytest.mark.parametrize(
    ("make", "name", "way_out"),
    [
        (heads, "grid", r"Heads\(…\)\.live\(\)"),
        (attention_map, "map", r"AttentionMap\(…\)\.live\(\)"),
        (one_query, "plane", r"OneQuery\(…\)\.live\(\)"),
        (mask, "attention", r"Mask\(…\)\.live\(\)"),
    ],
)
def test_live_keeps_its_data(make, name, way_out):
    widget = make().live()
    before = getattr(widget, name)
    with pytest.raises(
        ValueError, match=f"{name} cannot be changed; make a new {way_out}"
    ):
        setattr(widget, name, {})
    assert getattr(widget, name) == before
    widget.set_state({name: json.loads(json.dumps(before))})


# ---- the house


def test_explorers_are_light_until_they_are_live():
    heavy = "print({'anywidget', 'ipywidgets', 'matplotlib'} & set(sys.modules))"
    code = f"import sys, mha_teach; {heavy}; import mha_teach.widgets; {heavy}"
    assert python(code) == "set()\nset()\n"


@pytest.mark.parametrize("path", sorted((WIDGETS / "static").glob("*.mjs")), ids=str)
def test_modules_stay_readable(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 350
    assert max(map(len, lines)) <= 120


def test_the_picture_of_the_readme_is_what_heads_draws():
    grid = json.loads((ROOT / "chapters" / "artifacts" / "heads_grid.json").read_text())
    stored = ROOT / "chapters" / "figures" / "heads_explorer.svg"
    assert stored.read_text() == Heads(grid).picture() + "\n"
