"""What every explorer and the slider refuse alike, and that the ways out are ones."""

import importlib
import json
import re

import numpy as np
import pytest
import torch
import traitlets

import test_widgets
import widget_data
from mha_teach import masks

GRID = test_widgets.GRID
WEIGHTS = np.eye(3)
KEYS = [(1, 0), (0, 1), (1, 1)]
EXPLORERS = {
    "Heads": lambda users, **choices: users.Heads(GRID, **{"d_k": 13} | choices),
    "OneQuery": lambda users, **choices: users.OneQuery(KEYS, **choices),
    "Mask": lambda users, **choices: users.Mask(masks.causal(4), **choices),
    "AttentionMap": lambda users, **choices: users.AttentionMap(
        WEIGHTS, list("abc"), **choices
    ),
}
LISTS = "pass lists of one length, an array, or a tensor that holds data"
WRONG_CHOICES = [
    ("Heads", "num_heads", "two", TypeError, "must be an int, got 'two'; pass a whole"),
    ("Heads", "num_heads", 3, ValueError, "=3 does not exist here; choose from 1, 2"),
    ("Heads", "selected_head", 5, ValueError, "=5 does not exist here; choose from 0"),
    ("Heads", "d_k", True, TypeError, "must be an int, got True; pass a whole number"),
    ("OneQuery", "x", True, TypeError, "must be a number, got True; pass a float"),
    ("OneQuery", "x", 99, ValueError, "=99 does not exist here; choose from -3 to 3"),
    ("OneQuery", "y", "1", TypeError, "must be a number, got '1'; pass a float"),
    ("OneQuery", "temperature", 1e-9, ValueError, "=1e-09 does not exist here; choose"),
    ("Mask", "mask", [], ValueError, "has shape (0,), expected (n, n), a row for each"),
    ("Mask", "mask", np.eye(4), TypeError, "additive mask becomes bool by mask == 0"),
    ("Mask", "mask", masks.causal(3), ValueError, "is 3 by 3, but there are 4 tokens"),
    ("Mask", "changed", 9, ValueError, "=9 does not exist here; choose from 0 to 3"),
    ("Mask", "changed", 1.0, TypeError, "must be an int, got 1.0; pass a whole number"),
    ("AttentionMap", "layer", "0", TypeError, "must be an int, got '0'; pass a whole"),
    ("AttentionMap", "head", 4, ValueError, "=4 does not exist here; choose from 0 to"),
    ("AttentionMap", "hide_special", 1, TypeError, "must be a bool, got 1; pass True"),
]


@pytest.fixture(params=EXPLORERS)
def explorer(request, users):
    return EXPLORERS[request.param](users)


# ---- choices


@pytest.mark.parametrize(("kind", "name", "value", "error", "message"), WRONG_CHOICES)
def test_a_wrong_choice_is_refused_on_every_way_in(
    users, kind, name, value, error, message
):
    explorer = EXPLORERS[kind](users)
    widget, before = explorer.live(), getattr(explorer, name)

    def set_live():
        setattr(widget, name, value)

    def set_and_show():
        changed = explorer.at()
        setattr(changed, name, value)
        changed._repr_mimebundle_()

    ways_in = [lambda: explorer.at(**{name: value}), set_live, set_and_show]
    if name != "mask":
        ways_in.append(lambda: EXPLORERS[kind](users, **{name: value}))
    for way_in in ways_in:
        with pytest.raises(error, match=f"{name}.*{re.escape(message)}"):
            way_in()
    assert getattr(widget, name) == getattr(explorer, name) == before


def test_none_is_refused_on_every_way_in(explorer):
    widget = explorer.live()
    for name in explorer.choices:
        with pytest.raises(TypeError, match=f"{name} must be .*, got None; pass "):
            explorer.at(**{name: None})
        with pytest.raises(TypeError, match=f"{name} must be .*, got None; pass "):
            setattr(widget, name, None)
    for name in explorer.data():
        for value in (None, 5):
            with pytest.raises(ValueError, match=f"{name} cannot be changed; make a n"):
                setattr(widget, name, value)
    assert widget._repr_mimebundle_()[0]["text/plain"] == explorer.sentence()


def test_a_message_from_the_page_is_kept_whole_or_not_at_all(users):
    widget = EXPLORERS["Heads"](users, num_heads=11, selected_head=7).live()
    before = widget._repr_mimebundle_()[0]["text/html"]
    for wrong in ({"num_heads": "two"}, {"num_heads": None}, {"selected_key": 99}):
        ((name, value),) = wrong.items()
        with pytest.raises(
            traitlets.TraitError, match=f"{name}.*{value}.*; (pass|choose)"
        ):
            widget.set_state(wrong | {"d_k": 2})
        assert widget._repr_mimebundle_()[0]["text/html"] == before
    widget = EXPLORERS["Mask"](users).live()
    with pytest.raises(
        traitlets.TraitError, match="got None; pass lists of one length"
    ):
        widget.set_state({"mask": None})
    assert (widget.preset, len(widget.mask)) == ("causal", 4)


@pytest.mark.parametrize(("name", "value"), [("zz", 1), ("preset", "window")])
def test_there_is_no_such_choice(explorer, name, value):
    kind = type(explorer).__name__
    message = f"{name}={value!r} is no choice of {kind}; choose from "
    with pytest.raises(TypeError, match=f"^{re.escape(message)}") as caught:
        explorer.at(**{name: value})
    known = str(caught.value).removeprefix(message).split(", ")
    same = explorer.at(**{name: getattr(explorer, name) for name in known})
    assert same.state() == explorer.state()


def test_one_choice_must_fit_the_others(users):
    explorer = EXPLORERS["Heads"](users, num_heads=11, selected_head=7)
    with pytest.raises(ValueError, match=r"selected_head=7 does not .* from 0 to 1"):
        explorer.at(num_heads=2)
    assert explorer.at(num_heads=2, selected_head=1).selected_head == 1


def test_other_choices_are_what_json_holds(users):
    mask = torch.ones(4, 4, dtype=torch.bool)
    same = EXPLORERS["Mask"](users).at(mask=mask, changed=np.int64(2))
    assert same.preset == "everyone"
    json.dumps(same.state())


# ---- ways out: what a message tells to pass is accepted


def way_out(caught, before: str, **names):
    """Run the code that a message ends with."""
    code = str(caught.value).rpartition(before)[2]
    return eval(code, {"np": np, "torch": torch, **names})


@pytest.mark.parametrize(
    ("mask", "before"),
    [
        (masks.causal(11), "; pass "),
        (masks.causal(11).tensor(), "; pass "),
        (masks.causal(11).tensor().numpy(), "; pass "),
        (masks.causal(11).tensor().tolist(), "; pass "),
        (list(masks.causal(11).tensor()), "; pass "),
        (masks.causal(1, 6), " square by "),
        (masks.padding([4], 6)[0, 0], " square by "),
        (np.array([True, False, True]), " square by "),
        ([True, False, True], " square by "),
        ([[True, False, True]], " square by "),
        ([torch.tensor([True, False])], " square by "),
        (masks.padding([4], 6)[0].expand(1, 6, 6), "such as "),
        (np.ones((1, 1, 3, 3), bool).tolist(), "such as "),
        ([torch.ones(3, 3, dtype=torch.bool)], "such as "),
        (torch.eye(3), " bool by "),
        ([[1, 0], [1, 1]], " bool by "),
        ([torch.zeros(2), torch.ones(2)], " bool by "),
    ],
)
def test_the_way_to_a_mask_works(users, mask, before):
    with pytest.raises((TypeError, ValueError), match=re.escape(before)) as caught:
        users.Mask(mask)
    assert users.Mask(way_out(caught, before, mask=mask)).sentence()


PASS = r"(pass |such as )\S+\[.*\]$"


@pytest.mark.parametrize(
    "weights",
    [
        np.zeros((65, 65)),
        np.zeros((65, 65)).tolist(),
        torch.zeros(17, 3, 3),
        [torch.zeros(17, 3, 3, requires_grad=True)] * 2,
        np.zeros((13, 1, 3, 3)),
        (torch.zeros(1, 2, 3, 3, requires_grad=True),) * 2,  # one of a batch, by layer
    ],
)
def test_the_way_to_weights_works(users, weights):
    def cut(weights):
        with pytest.raises(ValueError, match=PASS) as caught:
            users.AttentionMap(weights, list("abc"))
        before = re.search(PASS, str(caught.value))[1]
        return way_out(caught, before, weights=weights)

    weights = cut(weights)
    if weights.shape[-2] == 65:  # first the keys, then the queries
        weights = cut(weights)
    tokens = ["a"] * weights.shape[-1]
    assert users.AttentionMap(weights, tokens).sentence()


@pytest.mark.parametrize("kind", [list, tuple, np.array, torch.tensor])
def test_the_way_to_fewer_keys_works(users, kind):
    keys = kind([(1.0, 0.0)] * 9)
    with pytest.raises(ValueError, match="keys has 9 rows; pass 2 to 8") as caught:
        users.OneQuery(keys)
    assert len(users.OneQuery(way_out(caught, "such as ", keys=keys)).keys) == 8


def test_the_way_from_nan_works(users):
    weights = torch.zeros(3, 3).log().softmax(-1)  # of a query that sees nobody
    message = "between 0 and 1, found nan; put zeros where a query may look at nobody"
    with pytest.raises(ValueError, match=message):
        users.AttentionMap(weights, list("abc"))
    assert users.AttentionMap(weights.nan_to_num(0), list("abc")).sentence()


@pytest.mark.parametrize("masked", [np.eye(3), np.full((3, 3), 0.2), np.zeros((3, 3))])
def test_rows_may_lack_a_part_but_not_exceed_one(users, masked):
    assert users.AttentionMap(masked, list("abc")).sentence()
    message = "weights has a row with sum 1.2, more than 1; pass what comes after a so"
    with pytest.raises(ValueError, match=message):
        users.AttentionMap(np.stack([masked, np.full((3, 3), 0.4)]), list("abc"))


@pytest.mark.parametrize(
    "weights",
    [None, "abc", [[1], [1, 2]], [[10**400, 0], [0, 1]], torch.eye(2, device="meta")],
)
def test_weights_are_numbers(users, weights):
    message = f"weights must be numbers from 0 to 1, got .*; {LISTS}"
    with pytest.raises(TypeError, match=message):
        users.AttentionMap(weights, ["a", "b"])
    assert users.AttentionMap(torch.eye(2).to_sparse(), ["a", "b"]).sentence()


# ---- words


@pytest.mark.parametrize("name", ["labels", "tokens", "key_tokens", "special_tokens"])
@pytest.mark.parametrize(
    "words",
    [5, {"a"}, {"a": 1}, iter("abc"), torch.tensor(5), np.array(5), True],
)
def test_words_stand_in_a_list(users, name, words):
    def make(words):
        if name == "labels":
            return users.OneQuery(KEYS, labels=words)
        return users.AttentionMap(WEIGHTS, **{"tokens": list("abc")} | {name: words})

    message = f"{name} must be a list of str, got .*; pass words in their order, such"
    with pytest.raises(TypeError, match=message):
        make(words)
    for right in (["a", "b", "c"], ("a", "b", "c"), np.array(["a", "b", "c"]), "abc"):
        make(right)


def test_tokens_of_a_mask_stand_in_a_list(users):
    message = "tokens must be a list of str, got 5; pass words in their order, such as"
    with pytest.raises(TypeError, match=message):
        users.Mask(masks.causal(4), 5)


def test_special_tokens_are_words(users):
    message = r"special_tokens\[1\] must be a str, got 0; pass words, such as list\(map"
    with pytest.raises(TypeError, match=message):
        users.AttentionMap(WEIGHTS, list("abc"), special_tokens=["a", 0])
    none = users.AttentionMap(WEIGHTS, widget_data.CHINESE[:3], special_tokens=[])
    assert none.data()["map"]["special"] == []


# ---- the slider


@pytest.fixture
def slider(users):
    kind = importlib.import_module("mha_teach.widgets.slider").Slider
    given = {"start": 0, "low": 0, "high": 1, "step": 0.1}
    return lambda draw=str, name="w", **numbers: kind(draw, name, **given | numbers)


@pytest.mark.parametrize("name", ["start", "low", "high", "step"])
@pytest.mark.parametrize("value", [None, "1", True, [1, 2], 1j])
def test_a_slider_takes_numbers(slider, name, value):
    message = f"{name} must be a number, got {value!r}; pass a float"
    with pytest.raises(TypeError, match=re.escape(message)):
        slider(**{name: value})


@pytest.mark.parametrize("value", [None, "1", True, [1, 2]])
def test_the_value_of_a_slider_is_a_number(slider, value):
    widget = slider(start=0.5)
    message = f"w must be a number, got {value!r}; pass a float"
    with pytest.raises(TypeError, match=re.escape(message)):
        widget.value = value
    assert (widget.value, widget.picture) == (0.5, "0.5")


@pytest.mark.parametrize(
    "numbers",
    [
        {"step": 0},
        {"step": -0.1},
        {"step": 2},
        {"step": float("nan")},
        {"low": 1},
        {"low": 2},
        {"low": float("nan")},
        {"high": float("inf")},
    ],
)
def test_steps_lead_from_low_to_high(slider, numbers):
    given = {"low": 0, "high": 1, "step": 0.1} | numbers
    step, low, high = (f"{x}={given[x]:g}" for x in ("step", "low", "high"))
    message = (
        f"{step} does not lead from {low} to {high}; pass low < high and a step of"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        slider(**numbers)
    assert slider(step=1).value == 0


def test_a_slider_starts_on_itself(slider):
    message = "w=3 is not on the slider; choose from 0 to 1"
    with pytest.raises(ValueError, match=message):
        slider(start=3)


@pytest.mark.parametrize(
    ("step", "decimals"),
    [(1e-5, 5), (1e-12, 12), (0.1 + 0.2, 1), (1 / 3, 9), (0.25, 2)],
)
def test_fine_steps_are_kept(slider, step, decimals):
    widget = slider(step=step)
    widget.value = 3 * step
    assert widget.value == pytest.approx(3 * step, rel=1e-8)
    assert widget.decimals == decimals


def test_a_slider_draws_with_a_function(slider):
    message = "draw=5 is no function; pass one that returns HTML"
    with pytest.raises(TypeError, match=message):
        slider(5)


@pytest.mark.parametrize("picture", [None, 5, b"<figure>"])
def test_a_function_draws_html(slider, picture):
    message = f"draw gave {picture!r}; return plots.as_html(figure, alt)"
    with pytest.raises(TypeError, match=re.escape(message)):
        slider(lambda value: picture)


def test_the_name_of_a_slider_is_text(slider):
    assert slider(name=5)._repr_mimebundle_()[0]["text/plain"] == "5 = 0.0"
