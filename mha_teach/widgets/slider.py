"""A slider above a picture, where only a kernel can compute what the picture shows."""

from collections.abc import Callable

import ipywidgets


class Slider(ipywidgets.VBox):
    """A slider, and below it a picture of its value.

    The display carries the picture too, so that a notebook without its kernel, and the
    site, show the picture of the moment.

    Parameters
    ----------
    draw
        Takes a value and returns HTML, for example by ``plots.as_html``.
    name, start
        What the number is called, and the value to begin with.
    low, high, step
        The values to choose from.
    """

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
        self._draw, self._decimals = draw, len(f"{step:g}".partition(".")[2])
        self.slider = ipywidgets.FloatSlider(
            value=start,
            min=low,
            max=high,
            step=step,
            description=name,
            readout_format=f".{self._decimals}f",
            continuous_update=False,
        )
        self.picture = ipywidgets.HTML()
        self.slider.observe(self._redraw, "value")
        self._redraw()
        super().__init__([self.slider, self.picture])

    def _redraw(self, change=None) -> None:
        # A slider adds up its steps: 0 may come as 3e-17.
        self.picture.value = self._draw(round(self.slider.value, self._decimals))

    def _repr_mimebundle_(self, **kwargs) -> dict:
        words = f"{self.slider.description} = {self.slider.value:.{self._decimals}f}"
        still = {"text/html": self.picture.value, "text/plain": words}
        return super()._repr_mimebundle_(**kwargs) | still
