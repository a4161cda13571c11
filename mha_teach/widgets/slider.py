"""A slider above a picture, where only a kernel can compute what the picture shows."""

from collections.abc import Callable
from decimal import Decimal
from html import escape

import anywidget
import traitlets

from mha_teach.widgets._choices import real
from mha_teach.widgets._host import module
from mha_teach.widgets._svg import printable


class Slider(anywidget.AnyWidget):
    """A slider, and below it a picture of its value.

    The display carries the picture too, so that a notebook without its kernel, and the
    site, show the picture of the moment and say what it takes to move it.

    Parameters
    ----------
    draw
        Takes a value and returns HTML, for example by ``plots.as_html``.
    name, start
        What the number is called, and the value to begin with.
    low, high, step
        The values to choose from.

    Raises
    ------
    ValueError
        If a value is not between ``low`` and ``high``, or ``step`` leads nowhere.
    TypeError
        If a value is no number, or ``draw`` no function that returns HTML.
    """

    _esm = module(("slider.mjs",))
    value = traitlets.TraitType().tag(sync=True)
    picture = traitlets.Unicode().tag(sync=True)
    name = traitlets.Unicode().tag(sync=True)
    low = traitlets.Float().tag(sync=True)
    high = traitlets.Float().tag(sync=True)
    step = traitlets.Float().tag(sync=True)
    decimals = traitlets.Int().tag(sync=True)

    def __init__(
        self,
        draw: Callable[[float], str],
        name: str,
        *,
        start: int | float,
        low: int | float,
        high: int | float,
        step: int | float,
    ):
        if not callable(draw):
            raise TypeError(f"draw={draw!r} is no function; pass one that returns HTML")
        self._draw = draw
        numbers = {"start": start, "low": low, "high": high, "step": step}
        start, low, high, step = (real(*each) for each in numbers.items())
        if not 0 < step <= high - low < float("inf"):
            raise ValueError(
                f"step={step:g} does not lead from low={low:g} to high={high:g}; "
                "pass low < high and a step of at most high - low"
            )
        exponent = Decimal(f"{step:.9g}").normalize().as_tuple().exponent
        decimals = max(0, -exponent)
        fixed = {"name": printable(name), "low": low, "high": high, "step": step}
        super().__init__(value=start, decimals=decimals, **fixed)
        self.observe(self._redraw, "value")
        self._redraw()

    @traitlets.validate("value")
    def _within(self, proposal):
        value = real(self.name, proposal.value)
        if not self.low <= value <= self.high:
            raise ValueError(
                f"{self.name}={value:g} is not on the slider; choose from "
                f"{self.low:g} to {self.high:g}"
            )
        return round(value, self.decimals)

    def _redraw(self, change=None):
        try:
            picture = self._draw(self.value)
            if not isinstance(picture, str):
                raise TypeError(
                    f"draw gave {picture!r}; return plots.as_html(figure, alt)"
                )
        except BaseException as error:  # no picture of another value stays below
            why = escape(f"{type(error).__name__}: {error}")
            self.picture = f'<p role="alert">There is no picture: {why}</p>'
            raise
        self.picture = picture

    def _repr_mimebundle_(self, **kwargs):
        bundle, metadata = super()._repr_mimebundle_(**kwargs)
        words = f"{self.name} = {self.value:.{self.decimals}f}"
        how = f"<p>Here {escape(words)}. To move it, run the notebook.</p>"
        still = {"text/html": self.picture + how, "text/plain": words}
        return bundle | still, metadata
