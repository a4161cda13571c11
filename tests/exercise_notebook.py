"""What tests of the banks do with an exercise, and with the notebook it stands in."""

import functools
import io
from contextlib import redirect_stdout

import jupytext

from tools import solutions

NOTEBOOKS = {path.stem[:2]: path for path in sorted(solutions.FOLDER.glob("*.py"))}


@functools.cache
def cells(chapter, kind):
    """The sources of a notebook's cells: "code" or "markdown"."""
    notebook = jupytext.read(NOTEBOOKS[chapter])
    return [cell.source for cell in notebook.cells if cell.cell_type == kind]


def printed_by(code, **names):
    """Run cells in one namespace, and return what they printed, line by line."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        for cell in code:
            exec(cell, names)
    return printed.getvalue().splitlines()


def observed(exercise, name, value):
    """What a property makes of a value that is handed in under its name."""
    (prop,) = (p for p in exercise.properties if p.name == name)
    return prop.observe(lambda *_: {name: value}, exercise.inputs(None))
