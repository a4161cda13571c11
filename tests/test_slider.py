"""The slider that a kernel answers: it redraws, and its picture outlives the kernel."""

import pytest

from mha_teach.widgets.slider import Slider

VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def drawn():
    """The values that were asked for, in order."""
    return []


@pytest.fixture
def slider(drawn):
    def draw(value):
        drawn.append(value)
        return f"<figure>w is {value}</figure>"

    return Slider(draw, "w", start=0, low=-0.5, high=1.5, step=0.05)


def test_the_picture_follows_the_slider(slider, drawn):
    assert slider.children == (slider.slider, slider.picture)
    assert slider.picture.value == "<figure>w is 0.0</figure>"
    slider.slider.value = 0.35
    assert slider.picture.value == "<figure>w is 0.35</figure>"
    assert drawn == [0, 0.35]


def test_the_value_is_one_of_the_steps(slider, drawn):
    slider.slider.value = 1 - 0.9 - 0.1  # what many steps leave of 0
    slider.slider.value = 0.30000000000000004
    assert drawn[1:] == [0, 0.3]


def test_the_range_and_the_name_are_as_asked(slider):
    control = slider.slider
    assert (control.min, control.max, control.step) == (-0.5, 1.5, 0.05)
    assert control.description == "w"
    assert control.readout_format == ".2f"
    assert not control.continuous_update


def test_a_saved_notebook_shows_the_picture_of_the_moment(slider):
    slider.slider.value = 0.5
    bundle = slider._repr_mimebundle_()
    assert bundle["text/html"] == "<figure>w is 0.5</figure>"
    assert bundle["text/plain"] == "w = 0.50"
    assert bundle[VIEW]["model_id"] == slider.model_id


def test_whole_steps_have_no_decimals(drawn):
    draw = lambda value: drawn.append(value) or ""  # noqa: E731
    slider = Slider(draw, "n", start=2, low=0, high=8, step=2)
    assert slider.slider.readout_format == ".0f"
    assert slider._repr_mimebundle_()["text/plain"] == "n = 2"
