"""The explorer Mask: its numbers, what it says, the code it writes, what it refuses."""

import json
import math
import re
import subprocess
from functools import cache
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import mask_golden
import test_widgets
from explorer_page import html_of
from mha_teach import masks
from mha_teach.widgets import Mask

ROOT = Path(__file__).parents[1]
WORDS = ["the", "cat", "sat", "on", "the", "mat"]
CASES = {f"case {i}": x for i, x in enumerate(mask_golden.explorers())}

node = test_widgets.node


def everyone(n: int) -> np.ndarray:
    return np.ones((n, n), bool)


def causal(n: int) -> np.ndarray:
    return np.tril(everyone(n))


@pytest.fixture(params=CASES)
def case(request) -> Mask:
    return CASES[request.param]


# ---- numbers


def test_numbers_are_those_of_the_package(case):
    look = case.look()
    weights, outputs = mask_golden.attention(case)
    np.testing.assert_allclose(look.weights, weights, atol=1e-12)
    np.testing.assert_allclose(look.outputs, outputs, atol=1e-12)
    change = (outputs[1] - outputs[0]).abs().amax(-1)
    np.testing.assert_allclose(look.change, change, atol=1e-12)


def test_golden_file_is_what_python_says_now():
    assert mask_golden.PATH.read_text(encoding="utf-8") == mask_golden.written(), (
        "run `python tests/mask_golden.py` if the change is meant"
    )


@pytest.mark.slow
def test_every_leak_of_any_row_can_be_read_and_nothing_else_moves():
    explorer = Mask(everyone(10))
    for row in product((False, True), repeat=10):
        for changed in range(1, 10):
            change = explorer.at(mask=(row,) * 10, changed=changed).look().change
            if any(row[changed:]):
                assert change[:changed].min() >= 0.05
            else:
                assert change[:changed].max() == 0


def test_a_token_has_the_same_numbers_in_a_longer_mask():
    short, long = (Mask(causal(n)).data()["attention"] for n in (3, 7))
    for when, x in product(("before", "after"), "qkv"):
        assert long[when][x][:3] == short[when][x]


def test_a_token_that_may_look_at_nobody_has_zeros():
    mask = causal(6)
    mask[2] = False
    look = Mask(mask).look()
    assert not look.weights[:, 2].any()
    assert not look.outputs[:, 2].any()
    np.testing.assert_allclose(np.delete(look.weights, 2, axis=1).sum(-1), 1)


def test_padding_moves_no_output_of_a_real_token():
    padding = masks.padding([4], 6)[0, 0].expand(6, 6)
    assert Mask(padding, changed=4).verdicts()[:4] == ["stays"] * 4
    assert Mask(everyone(6), changed=4).verdicts()[:4] == ["leaks"] * 4


# ---- words


def says(mask, *tokens, **choices) -> str:
    return Mask(mask, list(tokens) or None, **choices).sentence()


def test_sentence_of_a_mask_that_does_not_leak():
    past = "Causal: each token sees itself and what came before. "
    assert says(masks.causal(6)) == (
        f"{past}Changing token 5 moves no earlier output: no leak."
    )
    assert says(masks.causal(6), *WORDS, changed=4) == (
        f"{past}Changing token 4 (“the”) and all after it moves no earlier output: "
        "no leak."
    )


def test_sentence_counts_the_leaks():
    assert says(everyone(6)) == (
        "Everyone: each token sees every token. "
        "5 outputs before token 5 move: fine for a model that reads, a leak for one "
        "that writes."
    )
    one = causal(6)
    one[2, 4] = True
    assert says(one, changed=3) == (
        "Painted: 22 of 36 cells are allowed. "
        "1 output before token 3 moves: fine for a model that reads, a leak for one "
        "that writes."
    )
    assert says(one, changed=5) == (
        "Painted: 22 of 36 cells are allowed. Changing token 5 moves no earlier "
        "output, but changing token 3 and all after it does."
    )


def test_sentence_points_out_who_may_look_at_nobody():
    mask = causal(6)
    mask[2] = False
    assert says(mask, *WORDS).endswith(
        " Token 2 (“sat”) may look at nobody: its output is zero."
    )
    mask[4:] = False
    assert says(mask).endswith(
        " Token 2, token 4 and token 5 may look at nobody: their outputs are zero."
    )


def test_sentence_where_nothing_comes_before():
    assert "No output comes before token 0, so nothing can leak." in says(
        everyone(6), changed=0
    )


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (
            masks.padding([4], 6)[0, 0].expand(6, 6),
            "the last 2 tokens are padding, and",
        ),
        (masks.padding([1], 2)[0, 0].expand(2, 2), "the last token is padding, and"),
        (
            masks.combine(masks.causal(6), masks.padding([4], 6))[0, 0],
            "Causal and padding: each token sees itself and what came before; the l",
        ),
        (masks.window(6, 3), "Window: each token sees itself and the 2 before it. "),
    ],
)
def test_presets_say_what_they_allow(mask, expected):
    assert expected in says(mask)


def test_verdicts():
    mask = causal(6)
    mask[0, 5], mask[3] = True, False
    found = Mask(mask, changed=4).verdicts()
    assert found == ["leaks", "stays", "stays", "sees nobody"] + ["was changed"] * 2


def test_table_holds_the_numbers():
    mask = causal(6)
    mask[0, 5], mask[3] = True, False
    explorer = Mask(mask, WORDS, changed=4)
    head, body = ElementTree.fromstring(explorer.table())[1:]
    assert [x.text for x in head[0]][:2] == ["token", "may look at"]
    rows = [[cell.text for cell in row] for row in body]
    look = explorer.look()
    numbers = [
        f"({x:.2f},\u00a0{y:.2f})".replace("-", "−") for x, y in look.outputs[:, 0]
    ]
    change = f"{look.change[0]:.2f}"
    assert rows[0] == ["the", "the, mat", *numbers, change, "leaks"]
    zeros = ["(0.00,\u00a00.00)"] * 2
    assert rows[3] == ["on", "nobody", *zeros, "0.00", "sees nobody"]
    assert "New tokens from token 4 (“the”) on" in explorer.table()


def test_alternative_text_tells_the_mask():
    alt = Mask(causal(3), ["a", "b", "c"], changed=1).alt()
    assert "by row: a: a; b: a, b; c: a, b, c." in alt
    assert "moves with new tokens from token 1 (“b”) on." in alt


# ---- presets and code


@pytest.mark.parametrize("n", range(2, 11))
def test_presets_are_what_their_code_makes(n):
    explorer = Mask(causal(n))
    for preset in explorer.data()["attention"]["presets"]:
        names = {}
        exec(f"{preset['imports']}\nmask = {preset['code']}", names)
        assert names["mask"].dtype == torch.bool
        assert names["mask"].tolist() == preset["mask"]
        assert Mask(names["mask"]).preset == preset["name"]


def test_few_tokens_have_fewer_presets():
    def names(n):
        return [p["name"] for p in Mask(causal(n)).data()["attention"]["presets"]]

    everything = ["everyone", "causal", "padding", "causal and padding", "window"]
    assert names(2) == names(3) == everything[:3]
    assert names(4) == names(10) == everything


TARGETS = ("this book", "nn.MultiheadAttention", "an additive mask")


@cache
def written(node: str) -> list[list[str]]:
    """Return what the page offers to copy: one text a golden state and target."""
    model = ROOT / "mha_teach" / "widgets" / "static" / "mask_model.mjs"
    script = (
        f"import {{ code }} from {json.dumps(model.as_uri())};\n"
        "import { readFileSync } from 'node:fs';\n"
        f"const text = readFileSync({json.dumps(str(mask_golden.PATH))}, 'utf8');\n"
        "const written = JSON.parse(text).map(({ attention, mask }) =>\n"
        "  [0, 1, 2].map((target) => code(attention, mask, target)));\n"
        "console.log(JSON.stringify(written));\n"
    )
    command = [node, "--input-type=module", "--eval", script]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


@pytest.fixture
def codes(node):
    return written(node)


def executed(code: str) -> dict:
    names = {}
    exec(code, names)
    return names


@pytest.mark.parametrize("target", range(3), ids=TARGETS)
def test_copied_code_makes_the_mask_that_is_shown(codes, target):
    for explorer, texts in zip(CASES.values(), codes, strict=True):
        names = executed(texts[target])
        mask = torch.tensor(explorer.mask)
        assert torch.equal(names["mask"], mask)
        given = {
            0: lambda names, mask: mask,
            1: lambda names, mask: masks.to_torch_mha(mask),
            2: lambda names, mask: torch.zeros(mask.shape).where(mask, -math.inf),
        }[target](names, mask)
        assert torch.equal(names["attn_mask" if target else "mask"], given)


def test_copied_code_is_short_and_clean(codes):
    for texts in codes:
        for text in texts:
            assert max(map(len, text.splitlines())) <= 88
            assert text.count("import torch") <= 1


def test_code_for_the_fused_function_gives_the_outputs_shown(codes):
    for explorer, texts in zip(CASES.values(), codes, strict=True):
        data = explorer.data()["attention"]["before"]
        q, k, v = (torch.tensor(data[x], dtype=torch.float64) for x in "qkv")
        bool_mask = executed(texts[0])["mask"]
        added = executed(texts[2])["attn_mask"].double()
        for mask in (bool_mask, added):
            output = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            np.testing.assert_allclose(output, explorer.look().outputs[0], atol=1e-12)


def test_what_is_said_of_nan():
    mask = torch.tensor(causal(6))
    mask[2] = False
    x = torch.randn(1, 6, 4)
    mha = nn.MultiheadAttention(4, 2, batch_first=True)
    for module in (mha, mha.eval()):
        assert module(x, x, x, attn_mask=~mask)[0][0, 2].isnan().all()
    scores = torch.randn(6, 6).masked_fill(~mask, -math.inf)
    assert scores.softmax(-1)[2].isnan().all()


# ---- what is accepted and refused


@pytest.mark.parametrize(
    "mask",
    [
        causal(5),
        causal(5).T.copy().T,
        torch.tensor(causal(5)),
        causal(5).tolist(),
        tuple(map(tuple, causal(5).tolist())),
        list(causal(5)),
        list(torch.tensor(causal(5))),
        masks.causal(5),
        masks.causal(5).tensor(),
        masks.causal(5).tensor().to_sparse(),
    ],
)
def test_masks_of_any_library(mask):
    same = Mask(mask)
    assert same.mask == tuple(map(tuple, causal(5).tolist()))
    assert html_of(same) == html_of(Mask(causal(5)))


BOOL = "mask must be bool (True = may attend), got "
FOUR = torch.ones(1, 1, 6, 6, dtype=torch.bool)
ROWS = "mask must be n rows of n bools (True = may attend), got "
WRONG_MASKS = [
    (
        causal(5).astype(int),
        TypeError,
        f"{BOOL}int64; a mask of 1 and 0 becomes bool by",
    ),
    (
        torch.ones(5, 5).int(),
        TypeError,
        f"{BOOL}torch.int32; a mask of 1 and 0 becomes",
    ),
    (
        [[1, 0], [1, 1]],
        TypeError,
        f"{BOOL}int64; a mask of 1 and 0 becomes bool by np.a",
    ),
    ([[True, 0], [1, 1]], TypeError, f"{BOOL}int64"),
    (
        torch.zeros(5, 5),
        TypeError,
        "got torch.float32; an additive mask becomes bool by m",
    ),
    (
        torch.zeros(2, 2).bfloat16(),
        TypeError,
        f"{BOOL}torch.bfloat16; an additive mask",
    ),
    (
        np.zeros((5, 5)),
        TypeError,
        f"{BOOL}float64; an additive mask becomes bool by mask",
    ),
    ("causal", TypeError, f"{ROWS}'causal'; pass lists of one length, an array, or a"),
    (None, TypeError, f"{ROWS}None; pass lists of one length, an array, or a tensor t"),
    ([[True], [True, False]], TypeError, f"{ROWS}[[True], [True, False]]; pass lists"),
    (
        torch.ones(5, 5, dtype=torch.bool, device="meta"),
        TypeError,
        "tensor(..., d...pe=torch.bool); pass lists of one length, an array, or a te",
    ),
    (
        FOUR,
        ValueError,
        "mask has shape (1, 1, 6, 6), expected (n, n); pass one mask of ",
    ),
    (FOUR, ValueError, "such as mask[0, 0]"),
    (
        FOUR[0],
        ValueError,
        "mask has shape (1, 6, 6), expected (n, n); pass one mask of t",
    ),
    (
        FOUR[0, 0, :3],
        ValueError,
        "mask has shape (3, 6), expected (n, n), a row for each",
    ),
    (FOUR[0, 0, :3], ValueError, "for each that is looked at; pass n rows of n bools"),
    (
        FOUR[0, 0, :1],
        ValueError,
        "a row for all becomes square by [mask.ravel()] * 6",
    ),
    (True, ValueError, "mask has shape (), expected (n, n)"),
    ([], ValueError, "mask has shape (0,), expected (n, n)"),
    ([], ValueError, "for each that is looked at; pass n rows of n bools"),
    (
        [[True]],
        ValueError,
        "mask is 1 by 1, smaller than 2 by 2; pass a mask for 2 to 10 t",
    ),
    (
        everyone(11),
        ValueError,
        "mask is 11 by 11, larger than 10 by 10; pass mask[:10, :10]",
    ),
]


@pytest.mark.parametrize(("mask", "kind", "message"), WRONG_MASKS)
def test_mask_refuses_what_is_no_mask(mask, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        Mask(mask)


@pytest.mark.parametrize(
    ("choices", "kind", "message"),
    [
        (
            {"changed": 6},
            ValueError,
            "changed=6 does not exist here; choose from 0 to 5",
        ),
        (
            {"changed": -1},
            ValueError,
            "changed=-1 does not exist here; choose from 0 to",
        ),
        ({"changed": 1.0}, TypeError, "changed must be an int, got 1.0; pass a whole"),
        (
            {"changed": True},
            TypeError,
            "changed must be an int, got True; pass a whole",
        ),
        (
            {"tokens": ["a"] * 5},
            ValueError,
            "tokens has 5 labels, but mask has 6 rows;",
        ),
        ({"tokens": range(6)}, TypeError, "tokens[0] must be a str, got 0; pass words"),
    ],
)
def test_mask_refuses_another_choice(users, choices, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        users.Mask(causal(6), **choices)


@pytest.mark.parametrize("as_whole", [np.int64, np.array, torch.tensor])
def test_whole_numbers_of_any_library(as_whole):
    same = Mask(causal(6), changed=as_whole(3))
    assert html_of(same) == html_of(Mask(causal(6), changed=3))


def test_hostile_tokens_stay_text():
    tokens = ["</script><img src=x onerror=alert(1)>", "a\x1b", "&"]
    explorer = Mask(causal(3), tokens, changed=0)
    page = test_widgets.Page(html_of(explorer))
    assert page.tags.count("img") == 1
    assert tokens[0] in page.text
    ElementTree.fromstring(explorer.picture())
    assert explorer.tokens[1] == "a\ufffd"


def test_largest_mask_is_within_the_budget():
    words = [f"token number {i}" for i in range(10)]
    assert len(json.dumps(Mask(everyone(10), words).state())) <= 20_000


# ---- live


def test_live_mask_is_rows_of_bools():
    widget = Mask(causal(6)).live()
    assert torch.equal(torch.tensor(widget.mask), masks.causal(6).tensor())
    assert all(type(x) is bool for row in widget.mask for x in row)
    with pytest.raises(TypeError, match="does not support item assignment"):
        widget.mask[0][5] = True


def test_live_choices_can_be_read_set_and_observed():
    widget = Mask(causal(6)).live()
    seen = []
    widget.observe(lambda change: seen.append(change.name))
    widget.changed = 4
    widget.mask = torch.ones(6, 6) == 1
    assert sorted(seen) == ["changed", "mask", "preset"]
    expected = Mask(everyone(6), changed=4)
    assert widget._repr_mimebundle_()[0]["text/plain"] == expected.sentence()
    widget.mask = everyone(6).tolist()
    assert len(seen) == 3


def test_live_preset_paints_and_paint_names_the_preset():
    widget = Mask(causal(6)).live()
    assert widget.preset == "causal"
    for preset in Mask(causal(6)).data()["attention"]["presets"]:
        widget.preset = preset["name"]
        assert [list(row) for row in widget.mask] == preset["mask"]
    mask = causal(6)
    mask[0, 5] = True
    widget.mask = mask
    assert widget.preset == "painted"
    widget.mask = masks.window(6, 3)
    assert widget.preset == "window"


def test_live_takes_a_message_from_the_page():
    widget = Mask(causal(6)).live()
    widget.set_state({"mask": everyone(6).tolist(), "changed": 2})
    assert (widget.preset, widget.changed) == ("everyone", 2)
    assert widget.mask == Mask(everyone(6)).mask
    assert "preset" not in widget.get_state()


@pytest.mark.parametrize(
    ("name", "value", "kind", "message"),
    [
        (
            "preset",
            "prefix",
            ValueError,
            "preset='prefix' does not exist here; choose fr",
        ),
        (
            "preset",
            "painted",
            ValueError,
            "choose from everyone, causal, padding, causal ",
        ),
        ("preset", 3, ValueError, "preset=3 does not exist here; choose from everyo"),
        ("preset", [1], ValueError, "preset=[1] does not exist here; choose from ev"),
        ("mask", None, TypeError, f"{ROWS}None; pass lists of one length, an array,"),
        (
            "mask",
            causal(5),
            ValueError,
            "mask is 5 by 5, but there are 6 tokens; make a ",
        ),
        ("mask", causal(6) * 1, TypeError, f"{BOOL}int64"),
        ("changed", 6, ValueError, "changed=6 does not exist here; choose from 0 to 5"),
        ("changed", True, TypeError, "changed must be an int, got True"),
        (
            "attention",
            {},
            ValueError,
            "attention cannot be changed; make a new Mask(…).",
        ),
    ],
)
def test_live_refuses_what_the_explorer_refuses(users, name, value, kind, message):
    widget = users.Mask(causal(6)).live()
    before = getattr(widget, name)
    with pytest.raises(kind, match=re.escape(message)):
        setattr(widget, name, value)
    assert getattr(widget, name) == before
    assert widget.preset == "causal"


def test_few_tokens_have_no_window():
    widget = Mask(causal(3)).live()
    with pytest.raises(ValueError, match="choose from everyone, causal, padding"):
        widget.preset = "window"
