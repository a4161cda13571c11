"""OneQuery: what it computes, what it says, what it refuses."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import widget_data
from mha_teach import scaled_dot_product_attention
from mha_teach.widgets import OneQuery

KEYS, VALUES = widget_data.KEYS, widget_data.VALUES
PLACES = [(1.0, 0.5), (-2.9, 3.0), (0.0, 0.0), (0.3, -1.7)]


def one_query(**choices) -> OneQuery:
    return OneQuery(KEYS, **choices)


# ---- numbers


@pytest.mark.parametrize("temperature", [0.1, 0.2, 0.5, 1, 2, 5, 10])
@pytest.mark.parametrize(("x", "y"), PLACES)
def test_the_row_is_that_of_the_package(x, y, temperature):
    look = OneQuery(KEYS, VALUES, x=x, y=y, temperature=temperature).look()
    q, k, v = (torch.tensor(p, dtype=torch.float64) for p in ([(x, y)], KEYS, VALUES))
    output, weights = scaled_dot_product_attention(q, k, v, scale=1 / temperature)
    np.testing.assert_allclose(look.scores, (q @ k.mT)[0] / temperature, atol=1e-12)
    np.testing.assert_allclose(look.weights, weights[0], atol=1e-12)
    np.testing.assert_allclose(look.output, output[0], atol=1e-12)


def test_distances_are_those_from_query_to_key():
    query = torch.tensor([[0.3, -1.7]], dtype=torch.float64)
    expected = torch.cdist(query, torch.tensor(KEYS, dtype=torch.float64))[0]
    look = one_query(x=0.3, y=-1.7).look()
    np.testing.assert_allclose(look.distances, expected, atol=1e-12)


def test_keys_are_their_own_values_by_default():
    assert one_query().data() == OneQuery(KEYS, KEYS).data()
    assert one_query().data()["plane"]["labels"] == list("ABCDE")


@pytest.mark.parametrize(
    "kind", [np.array, torch.tensor, lambda p: list(map(torch.tensor, p)), tuple]
)
def test_keys_of_any_library(kind):
    keys = [(1.0, 0.5), (2.5, -1.5), (0.0, 3.0)]  # exact in every precision
    expected = OneQuery(keys).data()
    assert OneQuery(kind(keys)).data() == expected
    learned = torch.tensor(keys, dtype=torch.bfloat16, requires_grad=True)
    assert OneQuery(learned).data() == expected
    assert OneQuery(torch.tensor(keys).to_sparse()).data() == expected


def test_double_precision_is_kept():
    keys = torch.tensor([[0.1, 0.2], [0.3, 0.7]], dtype=torch.float64)
    assert OneQuery(keys).data()["plane"]["keys"] == keys.tolist()


# ---- words


@pytest.mark.parametrize(
    ("keys", "choices", "sentence"),
    [
        (
            [(1.2, 0.4), (2.4, 1.6), (-0.8, 1.9)],
            {},
            "B gets the most, 0.82: it reaches furthest in the query's direction. "
            "The nearest is A, with 0.14.",
        ),
        (
            [(1, 0), (0, 1)],
            {"x": 1.5, "y": 0},
            "A gets the most, 0.82: it reaches furthest in the query's direction. "
            "It is also the nearest.",
        ),
        (
            [(1, 2), (1, -2), (0, 0)],
            {"x": 1.5, "y": 0},
            "A and B get the most, 0.45 each: they reach equally far in the query's "
            "direction. The nearest is C, with 0.10.",
        ),
        (
            [(2, 0), (1, 1), (1, -1)],
            {"x": 0.5, "y": 0},
            "A gets the most, 0.45: it reaches furthest in the query's direction. "
            "The nearest are B and C, with 0.27 and 0.27.",
        ),
        (
            [(2, 0.1), (1, 0), (3, 0)],
            {"x": -1, "y": 0},
            "B gets the most, 0.67: no key points the query's way, and it points away "
            "least. It is also the nearest.",
        ),
        (
            [(1, 2), (1, -2), (3, 0)],
            {"x": -1, "y": 0},
            "A and B get the most, 0.47 each: no key points the query's way, and they "
            "point away least. The nearest are A and B, with 0.47 and 0.47.",
        ),
        (
            [(1, 2), (2, -2), (3, 0)],
            {"x": 0, "y": 0},
            "The query is 0, so each of 3 keys gets the same weight, 0.33. The output "
            "is the plain mean of the values.",
        ),
        (
            [(1, 2), (1, -2)],
            {"x": 2, "y": 0},
            "All scores are equal, so each of 2 keys gets the same weight, 0.50. The "
            "output is the plain mean of the values.",
        ),
    ],
)
def test_the_finding(keys, choices, sentence):
    assert OneQuery(keys, **choices).sentence() == sentence


@pytest.mark.parametrize(
    ("choices", "end"),
    [
        ({"temperature": 0.1}, " At temperature 0.1 the look-up is nearly hard."),
        ({"x": -1, "y": -3}, "nearest. The look-up is nearly hard."),
        (
            {"x": 0.2, "y": 0, "temperature": 10},
            " At temperature 10 the weights are nearly equal.",
        ),
        ({"x": 0.1, "y": 0}, "with 0.25. The weights are nearly equal."),
        ({"temperature": 0.5}, "The nearest is A, with 0.07."),
    ],
)
def test_the_finding_says_how_hard_the_choice_is(choices, end):
    keys = [(1.25, 0.5), (2, 1.5), (0.75, 1.9), (1, -1)]
    assert OneQuery(keys, **choices).sentence().endswith(end)


def test_alternative_text_names_the_numbers_of_the_picture():
    look = one_query().look()
    alt = one_query().alt()
    assert "A plane with 5 keys as arrows" in alt
    assert "the query at (1.0, 0.5)" in alt
    assert f"the output at ({look.output[0]:.2f}, {look.output[1]:.2f})" in alt
    assert f"B: score {look.scores[1]:.2f}, weight {look.weights[1]:.2f}" in alt


def test_table_lists_every_key():
    explorer = OneQuery(KEYS, VALUES, labels=widget_data.KEY_NAMES, temperature=0.5)
    page = ElementTree.fromstring(explorer.table())
    rows = [[cell.text for cell in row] for row in page.findall("tbody/tr")]
    assert len(rows) == 5
    look = explorer.look()
    assert rows[2] == [
        "a rather long name",
        "(−0.75, 1.90)",
        "(−2.00, 2.00)",
        f"{look.scores[2]:.2f}",
        f"{look.weights[2]:.2f}",
        f"{look.distances[2]:.2f}",
    ]
    assert "Query (1.0, 0.5), temperature 0.5: the output is (" in page[0].text


def drawn(explorer: OneQuery) -> ElementTree.Element:
    return ElementTree.fromstring(explorer.picture())


def words_of(explorer: OneQuery) -> list[str]:
    return [node.text for node in drawn(explorer).iter() if node.tag.endswith("text")]


def test_picture_names_keys_once_and_values_that_lie_apart_once_more():
    names = words_of(OneQuery(KEYS, VALUES))
    assert names.count("A") == 2  # in the plane and in its row
    assert names.count("value A") == 1
    assert "value A" not in words_of(one_query())


def test_picture_shows_weights_as_areas():
    look, svg = one_query().look(), drawn(one_query())
    radii = [
        float(node.attrib["r"])
        for node in svg.iter()
        if "fill-opacity" in node.attrib and node.tag.endswith("circle")
    ]
    assert radii == pytest.approx(26 * np.sqrt(look.weights), abs=0.0501)


def test_hull_has_the_outer_values_only():
    values = [(0, 0), (2, 0), (0, 2), (0.5, 0.5), (1, 1)]  # the last on an edge
    hull = next(
        node.attrib["d"]
        for node in drawn(OneQuery(KEYS, values)).iter()
        if node.attrib.get("fill-opacity") == "0.1"
    )
    assert hull == "M165 165L265 165L165 65z"


def test_query_at_the_origin_has_no_line_of_equal_scores():
    count = [one_query(x=x, y=0).picture().count("dasharray") for x in (0.1, 0)]
    assert count == [2, 1]


@pytest.mark.parametrize("name", ["\0", "\x1b", "\ud800"])
def test_a_character_that_no_picture_may_hold_gives_way(name):
    explorer = OneQuery([(1, 2), (2, 1)], labels=[f"x{name}y", "b"], title=f"why{name}")
    assert "x\ufffdy" in words_of(explorer)
    assert explorer.data()["plane"]["title"] == "why\ufffd"
    explorer._repr_mimebundle_()["text/html"].encode()


# ---- choices


@pytest.mark.parametrize(
    "as_number", [float, np.float32, np.float64, np.array, torch.tensor, str]
)
def test_numbers_of_any_library_are_choices(as_number, users):
    if as_number is str:
        message = "x must be a number, got '0.3'; pass a float"
        with pytest.raises(TypeError, match=re.escape(message)):
            users.OneQuery(KEYS, x="0.3")
        return
    explorer = one_query(x=as_number(0.3), y=as_number(2.0), temperature=as_number(0.2))
    assert explorer.state() == one_query(x=0.3, y=2, temperature=0.2).state()


def test_steps_of_a_tenth_stay_on_the_grid():
    assert one_query(x=0.1 + 0.2).x == 0.3
    widget = one_query(x=0.1).live()
    for _ in range(7):
        widget.x += 0.1
    assert widget.x == 0.8


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (
            {"x": 0.25},
            "x=0.25 does not exist here; choose from -3 to 3 in steps of 0.1",
        ),
        ({"y": 3.1}, "y=3.1 does not exist here; choose from -3 to 3 in steps of 0.1"),
        ({"x": -1e9}, "x=-1000000000.0 does not exist here; choose from -3 to 3 in"),
        (
            {"temperature": 3},
            "temperature=3 does not exist here; choose from 0.1, 0.2, 0.5, 1, 2, 5, 10",
        ),
        ({"temperature": 0}, "temperature=0 does not exist here; choose from 0.1,"),
        ({"temperature": 1e-9}, "temperature=1e-09 does not exist here; choose from"),
        (
            {"x": float("nan")},
            "x=nan does not exist here; choose from -3 to 3 in steps",
        ),
        (
            {"y": -float("inf")},
            "y=-inf does not exist here; choose from -3 to 3 in ste",
        ),
    ],
)
def test_a_choice_that_does_not_exist(choices, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        one_query(**choices)


@pytest.mark.parametrize("name", ["x", "y", "temperature"])
@pytest.mark.parametrize("value", [True, np.True_, "1", None, 1j, [1.0, 2.0]])
def test_a_choice_is_a_number(users, name, value):
    message = f"{name} must be a number, got {value!r}; pass a float"
    with pytest.raises(TypeError, match=re.escape(message)):
        users.OneQuery(KEYS, **{name: value})


# ---- keys, values, labels


NUMBERS = " must be numbers from -3 to 3 of shape (n_k, 2), got "


@pytest.mark.parametrize("name", ["keys", "values"])
@pytest.mark.parametrize(
    ("points", "error", "message"),
    [
        (np.zeros(2), ValueError, " has shape (2,); pass points of a plane, shape (n_"),
        (np.zeros((5, 3)), ValueError, " has shape (5, 3); pass points of a plane, "),
        (np.zeros((1, 5, 2)), ValueError, " has shape (1, 5, 2); pass points of a "),
        ([(1, 2), (3,)], TypeError, f"{NUMBERS}[(1, 2), (3,)]; pass lists of one len"),
        ([("a", "b")] * 5, TypeError, f"{NUMBERS}[('a', 'b'), ('a', 'b'), ('a', 'b')"),
        ([("1", "2")] * 5, TypeError, f"{NUMBERS}[('1', '2'), ('1', '2'), ('1', '2')"),
        ([(1j, 2)] * 5, TypeError, f"{NUMBERS}[(1j, 2), (1j, 2), (1j, 2), (1j, 2), (1"),
        ([(10**400, 2)] * 5, TypeError, f"{NUMBERS}[(100000000000000000...00000000"),
        (torch.zeros(5, 2, device="meta"), TypeError, f"{NUMBERS}tensor(..., d..., si"),
        ([], ValueError, " has shape (0,); pass points of a plane, shape (n_k, 2)"),
        (
            [(0, 0)] * 4 + [(1, 3.25)],
            ValueError,
            " holds [1.0, 3.25], which is outside the plane; pass numbers from -3 to 3",
        ),
        (
            [(0, 0)] * 4 + [(1, np.nan)],
            ValueError,
            " holds [1.0, nan], which is outsi",
        ),
        (
            [(0, 0)] * 4 + [(np.inf, 1)],
            ValueError,
            " holds [inf, 1.0], which is outsi",
        ),
    ],
)
def test_points_that_are_none_of_the_plane(users, name, points, error, message):
    data = {"keys": KEYS, "values": VALUES} | {name: points}
    with pytest.raises(error, match=re.escape(name + message)):
        users.OneQuery(**data)


def test_no_keys_at_all(users):
    with pytest.raises(TypeError, match=r"keys must be numbers .* got None; pass"):
        users.OneQuery(None)


@pytest.mark.parametrize(
    ("n_k", "way_out"),
    [(0, "2 to 8 keys"), (1, "2 to 8 keys"), (9, "2 to 8 keys, such as keys[:8]")],
)
def test_too_few_and_too_many_keys(n_k, way_out):
    message = re.escape(f"keys has {n_k} rows; pass {way_out}")
    with pytest.raises(ValueError, match=f"{message}$"):
        OneQuery(np.zeros((n_k, 2)))


def test_one_value_for_each_key():
    message = "values has 4 rows, but keys has 5; pass one value for each key"
    with pytest.raises(ValueError, match=message):
        OneQuery(KEYS, VALUES[:4])


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (["a", "b"], ValueError, "labels has 2 labels, but keys has 5 rows; pass one"),
        (
            [1, 2, 3, 4, 5],
            TypeError,
            "labels[0] must be a str, got 1; pass words, such",
        ),
    ],
)
def test_labels_that_do_not_fit(users, labels, error, message):
    with pytest.raises(error, match=re.escape(message)):
        users.OneQuery(KEYS, labels=labels)


def test_state_is_within_its_budget():
    keys = np.random.default_rng(0).random((8, 2))
    assert len(json.dumps(OneQuery(keys, -keys).state())) <= 2_000


# ---- live


def test_live_choices_can_be_read_set_and_observed():
    widget = one_query().live()
    seen = []
    widget.observe(lambda change: seen.append((change.name, change.new)))
    widget.x = -0.5
    widget.y, widget.temperature = 2, 0.5
    assert seen == [("x", -0.5), ("y", 2.0), ("temperature", 0.5)]
    expected = one_query(x=-0.5, y=2, temperature=0.5).sentence()
    assert widget._repr_mimebundle_()[0]["text/plain"] == expected


def test_live_takes_a_message_from_the_page():
    widget = one_query().live()
    widget.set_state({"x": 3, "y": -0.1, "temperature": 10})
    assert (widget.x, widget.y, widget.temperature) == (3.0, -0.1, 10.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("x", 0.25), ("y", 4), ("temperature", 3), ("temperature", 1e-9)],
)
def test_live_refuses_what_the_explorer_refuses(name, value):
    widget = one_query().live()
    before = getattr(widget, name)
    with pytest.raises(ValueError, match=rf"{name}={value} does not exist here"):
        setattr(widget, name, value)
    assert getattr(widget, name) == before
