"""OneQuery on a plain page, with no kernel: keys, pointer, screen reader."""

import csv
import io
from xml.etree import ElementTree

import pytest

import widget_data
from explorer_page import PHONE, figure, saved, texts
from mha_teach.widgets import OneQuery

pytestmark = pytest.mark.browser

KEYS, VALUES, NAMES = widget_data.KEYS, widget_data.VALUES, widget_data.KEY_NAMES
FOCUSED = "document.querySelector('.mha-explorer').shadowRoot.activeElement.ariaLabel"


def one_query(**choices) -> OneQuery:
    return OneQuery(KEYS, VALUES, labels=NAMES, **choices)


def numbers(part, selector: str) -> list[float]:
    return [float(text.replace("−", "-")) for text in texts(part, selector)]


def slider(part, axis: str):
    return part.get_by_role("slider", name=f"query, {axis}", exact=True)


def assert_shows(part, explorer: OneQuery) -> None:
    """Compare everything on the page with what Python computes."""
    look = explorer.look()
    assert texts(part, ".finding") == [explorer.sentence()]
    for at, expected in enumerate(look[:3], start=2):
        shown = numbers(part, f".rows td:nth-child({at})")
        assert shown == pytest.approx(expected, abs=0.00501)
    output = f"({look.output[0]:.2f}, {look.output[1]:.2f})".replace("-", "−")
    assert texts(part, ".trail li")[2].endswith(f"= {output}.")
    for axis in "xy":
        place = f"x {explorer.x:.1f}, y {explorer.y:.1f}".replace("-", "−")
        assert slider(part, axis).get_attribute("aria-valuetext") == place
        assert float(slider(part, axis).input_value()) == getattr(explorer, axis)


def test_one_key_changes_scores_weights_output_and_the_sentence(show):
    part = figure(show(one_query()))
    assert_shows(part, one_query())
    before = texts(part, ".finding, .rows td, .trail li")
    slider(part, "x").press("ArrowRight")
    assert_shows(part, one_query(x=1.1))
    after = texts(part, ".finding, .rows td, .trail li")
    changed = [was != now for was, now in zip(before, after, strict=True)]
    assert all(changed[at] for at in (0, 1, 2, 3, -3, -1))


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("ArrowLeft", (0.9, 0.5)),
        ("ArrowUp", (1.0, 0.6)),
        ("ArrowDown", (1.0, 0.4)),
        ("Shift+ArrowLeft", (0.5, 0.5)),
        ("Shift+ArrowDown", (1.0, 0.0)),
        ("PageUp", (1.5, 0.5)),
        ("PageDown", (0.5, 0.5)),
        ("Home", (-3.0, 0.5)),
        ("End", (3.0, 0.5)),
    ],
)
def test_every_key_moves_as_far_as_it_says(show, key, place):
    part = figure(show(one_query()))
    slider(part, "x").press(key)
    assert_shows(part, one_query(x=place[0], y=place[1]))


def test_the_query_is_one_tab_stop_and_the_focus_follows_the_axis(show):
    page = show(one_query())
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED) == "query, x"
    page.keyboard.press("ArrowUp")
    assert page.evaluate(FOCUSED) == "query, y"
    page.keyboard.press("PageUp")
    assert_shows(figure(page), one_query(y=1.1))
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED) == "Temperature"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(FOCUSED) == "query, y"


def test_the_query_stays_in_the_plane(show):
    part = figure(show(one_query(x=2.9, y=-2.8)))
    for _ in range(3):
        slider(part, "x").press("Shift+ArrowRight")
        slider(part, "y").press("ArrowDown")
    assert_shows(part, one_query(x=3, y=-3))


def test_a_slider_can_be_set_as_screen_readers_do(show):
    part = figure(show(one_query()))
    slider(part, "y").fill("-2.5")
    assert_shows(part, one_query(y=-2.5))


def at(page, x: float, y: float) -> tuple[float, float]:
    """Where a point of the plane is on the page."""
    box = page.locator(".plane").bounding_box()
    unit = 50 / 330 * box["width"]
    return (
        box["x"] + box["width"] / 2 + unit * x,
        box["y"] + box["height"] / 2 - unit * y,
    )


def test_the_query_can_be_dragged(show):
    page = show(one_query())
    page.mouse.move(*at(page, 1, 0.5))
    page.mouse.down()
    page.mouse.move(*at(page, -1, 1), steps=5)
    assert_shows(figure(page), one_query(x=-1, y=1))
    page.mouse.move(*at(page, -9, 1.52))
    page.mouse.up()
    page.mouse.move(*at(page, 0, 0))
    assert_shows(figure(page), one_query(x=-3, y=1.5))
    page.keyboard.press("ArrowRight")
    assert_shows(figure(page), one_query(x=-2.9, y=1.5))


def test_a_tap_moves_the_query_and_a_finger_on_the_plane_scrolls(show):
    page = show(one_query(), viewport=PHONE, has_touch=True)
    page.touchscreen.tap(*at(page, -2, -1))
    assert_shows(figure(page), one_query(x=-2, y=-1))
    action = "node => getComputedStyle(node).touchAction"
    assert page.locator(".plane").evaluate(action) == "auto"
    assert page.locator(".query").evaluate(action) == "none"


def test_the_temperature_can_be_chosen(show):
    part = figure(show(one_query()))
    temperature = part.get_by_role("combobox", name="Temperature")
    temperature.select_option("0.1")
    assert_shows(part, one_query(temperature=0.1))
    assert "Divide by the temperature, 0.1" in texts(part, ".trail li")[0]
    temperature.select_option("10")
    assert_shows(part, one_query(temperature=10))


def test_the_focus_is_visible_around_the_query(show):
    page = show(one_query())
    outline = "node => getComputedStyle(node).outline"
    assert "none" in page.locator(".query").evaluate(outline)
    page.keyboard.press("Tab")
    assert "3px" in page.locator(".query").evaluate(outline)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_marks_stand_out_from_the_paper(show, theme):
    page = show(one_query(), color_scheme=theme)
    paper, *marks = page.evaluate("""() => {
      const root = document.querySelector(".mha-explorer").shadowRoot;
      const colours = (kind, name) => [...root.querySelectorAll(name)].map((node) =>
        getComputedStyle(node)[kind]);
      return [...colours("backgroundColor", ".paper"),
        ...colours("stroke", ".plane path[stroke*=accent], .plane [stroke*=warm]"),
        ...colours("fill", ".plane path[fill*=ink]")];
    }""")
    assert len(marks) == len(KEYS) - 1 + 5  # arrows, line, way, two rings, diamond
    for mark in marks:
        low, high = sorted(map(luminance, (mark, paper)))
        assert (high + 0.05) / (low + 0.05) >= 4.5


def luminance(colour: str) -> float:
    channels = [int(c) / 255 for c in colour.strip("rgb()").split(",")]
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    ]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_labels_are_text_and_not_markup(show):
    part = figure(show(one_query()))
    assert texts(part, ".rows tbody th") == NAMES
    assert part.locator(".rows th b").count() == 0


def test_values_that_lie_apart_are_named(show):
    page = show(one_query(), OneQuery(KEYS))
    names = [
        figure(page, at).locator(".plane text").all_text_contents() for at in (0, 1)
    ]
    assert "value 苹果" in names[0]
    assert names[1] == ["3", "3", *"ABCDE"]


def test_the_table_holds_the_numbers_of_the_moment(show):
    part = figure(show(one_query()))
    part.locator("summary").last.click()
    slider(part, "x").press("ArrowLeft")
    explorer = one_query(x=0.9)
    assert texts(part, ".tables caption")[0].startswith(
        "Query (0.9, 0.5), temperature 1"
    )
    expected = [
        cell.text for cell in ElementTree.fromstring(explorer.table()).iter("td")
    ]
    assert texts(part, ".tables td") == expected


def test_svg_of_the_moment_carries_its_sentence(show):
    page = show(one_query())
    slider(figure(page), "y").press("PageDown")
    explorer = one_query(y=0)
    drawing = saved(page, "Save SVG")
    spoken = [node.text for node in ElementTree.fromstring(drawing) if node.text]
    assert " ".join(spoken) == explorer.sentence()
    body = explorer.picture().partition('fill="#ffffff"/>')[2].removesuffix("</svg>")
    assert body in drawing.decode()


def test_csv_holds_every_key(show):
    explorer = one_query(temperature=2)
    text = saved(show(explorer), "Save CSV").decode("utf-8-sig")
    header, *rows = csv.reader(io.StringIO(text))
    assert header[-3:] == ["score", "weight", "distance"]
    assert [row[0] for row in rows] == NAMES
    for row, key, value, *rest in zip(
        rows, KEYS, VALUES, *explorer.look()[:3], strict=True
    ):
        found = list(map(float, row[1:]))
        assert found == pytest.approx([*key, *value, *rest], abs=0.0000501)


def test_a_key_repaints_at_once(show):
    page = show(OneQuery([(x / 2, 1) for x in range(-4, 4)]))
    took = page.evaluate("""async () => {
      const root = document.querySelector(".mha-explorer").shadowRoot;
      const times = [];
      for (let i = 0; i < 20; i += 1) {
        const start = performance.now();
        const key = { key: "ArrowRight", bubbles: true, cancelable: true };
        const event = new KeyboardEvent("keydown", key);
        root.querySelector("[type=range]").dispatchEvent(event);
        await Promise.resolve();
        root.querySelector(".plane").getBoundingClientRect(); // the layout counts
        times.push(performance.now() - start);
      }
      return times.sort((a, b) => a - b)[5]; // a busy machine slows some
    }""")
    assert took <= 50
