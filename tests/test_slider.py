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

    return Slider(draw, "w", start=0.5, low=-0.5, high=1.5, step=0.05)


def test_the_picture_follows_the_slider(slider, drawn):
    assert slider.picture == "<figure>w is 0.5</figure>"
    slider.value = 0.35
    assert slider.picture == "<figure>w is 0.35</figure>"
    assert drawn == [0.5, 0.35]


def test_a_value_from_the_page_is_drawn(slider, drawn):
    slider.set_state({"value": 0})
    assert slider.picture == "<figure>w is 0.0</figure>"
    assert drawn == [0.5, 0]


def test_the_value_is_one_of_the_steps(slider, drawn):
    slider.value = 1 - 0.9 - 0.1  # what many steps leave of 0
    slider.value = 0.30000000000000004
    assert drawn[1:] == [0, 0.3]


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_a_picture_that_fails_leaves_no_other_below_the_value(error):
    def draw(value):
        if value > 0:
            raise error("1 < 2")
        return "<figure>"

    slider = Slider(draw, "w", start=0, low=0, high=1, step=0.5)
    for set_value in (
        lambda: setattr(slider, "value", 0.5),
        lambda: slider.set_state({"value": 1}),
    ):
        with pytest.raises(error):
            set_value()
        message = f"There is no picture: {error.__name__}: 1 &lt; 2"
        assert slider.picture == f'<p role="alert">{message}</p>'
    slider.value = 0
    assert slider.picture == "<figure>"


@pytest.mark.parametrize("value", [-0.55, 1.55, float("nan")])
def test_a_value_off_the_slider_is_refused(slider, drawn, value):
    message = rf"w={value:g} is not on the slider; choose from -0\.5 to 1\.5"
    with pytest.raises(ValueError, match=message):
        slider.value = value
    assert (slider.value, drawn) == (0.5, [0.5])


def test_the_page_is_told_the_range_and_the_name(slider):
    told = slider.get_state()
    assert (told["low"], told["high"], told["step"]) == (-0.5, 1.5, 0.05)
    assert (told["name"], told["decimals"], told["value"]) == ("w", 2, 0.5)


def test_a_saved_notebook_shows_the_picture_of_the_moment(slider):
    slider.value = 1
    bundle, _ = slider._repr_mimebundle_()
    assert bundle["text/html"] == (
        "<figure>w is 1.0</figure><p>Here w = 1.00. To move it, run the notebook.</p>"
    )
    assert bundle["text/plain"] == "w = 1.00"
    assert bundle[VIEW]["model_id"] == slider.model_id


def test_a_name_is_text_and_not_markup():
    slider = Slider(lambda _: "", "<b>w", start=0, low=0, high=1, step=1)
    assert "Here &lt;b&gt;w = 0." in slider._repr_mimebundle_()[0]["text/html"]


def test_whole_steps_have_no_decimals(drawn):
    draw = lambda value: drawn.append(value) or ""  # noqa: E731
    slider = Slider(draw, "n", start=2, low=0, high=8, step=2)
    assert slider._repr_mimebundle_()[0]["text/plain"] == "n = 2"
