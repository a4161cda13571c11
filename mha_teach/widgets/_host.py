"""HTML first: one output that lives in JupyterLab, on a site and in a saved notebook.

An explorer displays as a figure (an image with alternative text), a caption and a
table, followed by its JavaScript module, which replaces them with the live view. Where
scripts are stripped, figure, caption and table remain.
"""

import base64
import hashlib
import html
import json
import re
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from pathlib import Path

STATIC = Path(__file__).parent / "static"

_PAGE = (
    '<figure data-mha="{key}" style="margin:1em 0"><div data-slot><img src="{image}" '
    'alt="{alt}" style="max-width:100%;height:auto"></div>'
    "<figcaption data-static>{sentence}</figcaption>"
    "<details data-static><summary>Show as table</summary>{table}</details>"
    '<script type="application/json">{state}</script></figure>'
    '<script type="module">{script}</script>'
)

# Indentation, comment lines and empty lines: a fifth of what each output would carry.
_PADDING = r"^[ \t]*(?://.*\n|/?\*.*\n|\n)?"

# Runs after the module, in the page that shows the output: a stand-in for the model of
# a widget, for every figure of this module that has not been started yet.
_START = """
function stand(state) {
  const listeners = {};
  return {
    get: (name) => state[name],
    set(name, value) {
      if (state[name] === value) return;
      state[name] = value;
      for (const listener of listeners[`change:${name}`] ?? []) listener();
    },
    on: (event, listener) => (listeners[event] ??= []).push(listener),
    save_changes() {},
  };
}
for (const figure of document.querySelectorAll('figure[data-mha="KEY"]')) {
  if (figure.dataset.state) continue;
  figure.dataset.state = "starting";
  try {
    const state = JSON.parse(figure.querySelector("script").textContent);
    render({ model: stand(state), el: figure.querySelector("[data-slot]") });
    for (const part of figure.querySelectorAll("[data-static]")) part.remove();
    figure.dataset.state = "live";
  } catch (error) {
    figure.dataset.state = "failed";
    console.error(error);
  }
}
"""


def module(parts: Sequence[str]) -> str:
    """Join files of ``static/`` into one ES module, with their styles as ``STYLES``.

    An inlined module cannot import its neighbours, so the texts are put one after the
    other. What they import and export among themselves goes, and so do indentation and
    comment lines.
    """
    styles = "".join(_read(name) for name in parts if name.endswith(".css"))
    styles = re.sub(r"\s*([{};:,])\s+", r"\1", re.sub(r"\s+", " ", styles))
    styles = styles.replace(";}", "}")
    sources = [f"const STYLES = {json.dumps(styles)};\n"]
    for name in parts:
        if name.endswith(".mjs"):
            sources.append(_without_ties(_read(name)))
    return re.sub(_PADDING, "", "".join(sources), flags=re.M)


def _read(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def _without_ties(source: str) -> str:
    """Drop what ties a file of ``static/`` to the others."""
    source = re.sub(r'^import \{[^}]*\} from "\./\w+\.mjs";\n', "", source, flags=re.M)
    declared = r"^export (?=(?:async )?function|const|let|class)"
    return re.sub(declared, "", source, flags=re.M)


def inline(source: str) -> str:
    """Turn a module into text that may stand between ``<script>`` tags.

    Raises
    ------
    ValueError
        If an import or another export is left: nothing could resolve it.
    """
    body = re.sub(r"^export default .*;\n", "", source, flags=re.M)
    left = re.search(r"^(?:import|export)\b.*", body, flags=re.M)
    if left:
        raise ValueError(f"an inlined module must be self-contained, found {left[0]!r}")
    return body.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def table(caption: str, header: Iterable[object], rows: Iterable[Sequence]) -> str:
    """Write an HTML table whose first column names the rows."""
    head = "".join(f'<th scope="col">{html.escape(str(x))}</th>' for x in header)
    body = "".join(
        f'<tr><th scope="row">{html.escape(str(first))}</th>'
        + "".join(f"<td>{html.escape(str(x))}</td>" for x in rest)
        + "</tr>"
        for first, *rest in rows
    )
    return (
        f"<table><caption>{html.escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


class Explorer(ABC):
    """One question, one picture, one sentence.

    A subclass names its files in ``static/`` and the choices a reader can make, and
    says what stands on the page before any script runs.

    Attributes
    ----------
    parts : tuple of str
        Files of ``static/`` that make up the module, in order.
    choices : dict
        Attributes that the live view changes, and ``live()`` synchronises. Each comes
        with the function of ``_choices`` that turns a value into what JSON holds.
    """

    parts: tuple[str, ...]
    choices: dict[str, Callable]

    @abstractmethod
    def data(self) -> dict:
        """Return what the module reads and never changes, ready for JSON."""

    @abstractmethod
    def sentence(self) -> str:
        """Return the finding: what this state shows, in one sentence."""

    @abstractmethod
    def alt(self) -> str:
        """Return what the static picture shows, for those who do not see it."""

    @abstractmethod
    def picture(self) -> str:
        """Return the static picture as SVG."""

    @abstractmethod
    def table(self) -> str:
        """Return the numbers behind the static picture as HTML."""

    @abstractmethod
    def allowed(self) -> dict:
        """Return the values that each choice may take.

        A range, a list, or a long list in equal steps.
        """

    def check(self) -> None:
        """Make each choice what JSON holds, and raise at one that is not allowed."""
        given = {name: getattr(self, name) for name in self.choices}
        for name, plain in self.choices.items():
            setattr(self, name, plain(name, given[name]))
        for name, value in given.items():
            self.check_choice(name, value)

    def check_choice(self, name: str, value: object) -> None:
        """Raise ``TypeError`` or ``ValueError`` if a choice cannot be ``value``."""
        if self.choices[name](name, value) not in (allowed := self.allowed()[name]):
            known = ", ".join(map(str, allowed))
            if isinstance(allowed, range):
                known = f"0 to {len(allowed) - 1}"
            elif len(allowed) > 20:
                first, second, *_, last = allowed
                known = f"{first:g} to {last:g} in steps of {second - first:g}"
            raise ValueError(
                f"{name}={value!r} does not exist here; choose from {known}"
            )

    def at(self, **choices) -> "Explorer":
        """Return the same explorer with other choices, or raise as the first did."""
        for name, value in choices.items():
            if name not in self.choices:
                raise TypeError(
                    f"{name}={reprlib.repr(value)} is no choice of "
                    f"{type(self).__name__}; choose from {', '.join(self.choices)}"
                )
        other = copy(self)
        vars(other).update(choices)
        other.check()
        return other

    @abstractmethod
    def live(self):
        """Return the explorer as a widget whose choices Python reads and sets."""

    def state(self) -> dict:
        """Return the data and the present choices."""
        return self.data() | {name: getattr(self, name) for name in self.choices}

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        self.check()
        return {"text/plain": self.sentence(), "text/html": self._html()}

    def _html(self) -> str:
        source = module(self.parts)
        key = hashlib.sha256((source + _START).encode()).hexdigest()[:12]
        image = base64.b64encode(self.picture().encode()).decode()
        state = json.dumps(
            self.state(), sort_keys=True, separators=(",", ":"), allow_nan=False
        )
        return _PAGE.format(
            key=key,
            image=f"data:image/svg+xml;base64,{image}",
            alt=html.escape(self.alt()),
            sentence=html.escape(self.sentence()),
            table=self.table(),
            state=state.replace("<", "\\u003c"),
            script=inline(source) + _START.replace("KEY", key),
        )
