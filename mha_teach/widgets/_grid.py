"""What Heads demands of its grid: each field that the picture or the page reads."""

import base64
import reprlib
from collections.abc import Callable, Mapping

import numpy as np

WAY_OUT = "pass the content of chapters/artifacts/heads_grid.json, read with json.load"

# Whether a value is right, and what is expected, in words.
Rule = tuple[Callable[[object], bool], str]
_WHOLE: Rule = (lambda x: type(x) is int, "a whole number")
_SIZE: Rule = (lambda x: type(x) is int and x >= 1, "a whole number from 1")
_SHARE: Rule = (
    lambda x: type(x) in (int, float) and 0 <= x <= 1,
    "a number from 0 to 1",
)
_WORD: Rule = (lambda x: isinstance(x, str), "a str")


def check_grid(grid: object) -> None:
    """Raise ``ValueError`` at the first field that is missing or wrong."""
    _require_fields("grid", grid, {"task", "example", "cells"})
    task, example, cells = grid["task"], grid["example"], grid["cells"]
    _check_fields(
        "grid['task']",
        task,
        {
            **dict.fromkeys(("d_model", "d_v", "positions", "steps"), _SIZE),
            "symbols": _list_of(_WORD),
            "guess": _SHARE,
        },
    )
    token, place = _below(len(task["symbols"])), _below(task["positions"])
    _check_fields(
        "grid['example']",
        example,
        {
            "tokens": _list_of(token, task["positions"]),
            "pointers": _list_of(place, 2),
            "answer": _list_of(token, 2),
        },
    )
    _check_cells(cells, task)


def halves(text: str) -> np.ndarray:
    """Read base64 of little-endian half-precision numbers."""
    data = base64.b64decode(text, validate=True)
    return np.frombuffer(data, "<f2").astype(np.float64)


def _check_cells(cells: object, task: Mapping) -> None:
    _require_fields("grid['cells']", cells, set())
    if not cells:
        raise ValueError(f"grid['cells'] is empty; {WAY_OUT}")
    for name, cell in cells.items():
        _check_cell(name, cell, task)
    # The finding compares with 1 head, or 2, of the same width.
    numbers = {1, 2} | {cell["num_heads"] for cell in cells.values()}
    widths = {cell["d_k"] for cell in cells.values()}
    names = {f"h{h}_dk{d_k}" for h in numbers for d_k in widths}
    _require_fields("grid['cells']", cells, names)


def _check_cell(name: str, cell: object, task: Mapping) -> None:
    where = f"grid['cells'][{name!r}]"
    _check_fields(where, cell, dict.fromkeys(("num_heads", "d_k"), _SIZE))
    h, d_k, n = cell["num_heads"], cell["d_k"], task["positions"] + 1
    if name != f"h{h}_dk{d_k}":
        raise ValueError(f"{where} has num_heads={h} and d_k={d_k}; {WAY_OUT}")
    rules = {
        "accuracy": _list_of(_SHARE),
        "shown_seed": _WHOLE,
        "q": _numbers(h * d_k),
        "k": _numbers(h * n * d_k),
        "v": _numbers(h * n * task["d_v"]),
        "probabilities": _numbers(2 * len(task["symbols"])),
    }
    _check_fields(where, cell, rules)


def _require_fields(where: str, record: object, names: set[str]) -> None:
    if not isinstance(record, Mapping):
        raise ValueError(
            f"{where} must be a mapping, got {reprlib.repr(record)}; {WAY_OUT}"
        )
    missing = names - set(record)
    if missing:
        raise ValueError(f"{where} has no {', '.join(sorted(missing))}; {WAY_OUT}")


def _check_fields(where: str, record: object, rules: Mapping[str, Rule]) -> None:
    _require_fields(where, record, set(rules))
    for name, (is_right, expected) in rules.items():
        if not is_right(record[name]):
            got = reprlib.repr(record[name])
            raise ValueError(f"{where}[{name!r}]={got} is not {expected}; {WAY_OUT}")


def _below(n: int) -> Rule:
    return lambda x: type(x) is int and 0 <= x < n, f"a whole number below {n}"


def _list_of(rule: Rule, length: int | None = None) -> Rule:
    is_right, expected = rule

    def are_right(x: object) -> bool:
        if not isinstance(x, list | tuple) or not x or length not in (None, len(x)):
            return False
        return all(map(is_right, x))

    return are_right, f"a list of {length or 'one or more'}, each {expected}"


def _numbers(n: int) -> Rule:
    def are_right(text: object) -> bool:
        try:
            numbers = halves(text)
        except (TypeError, ValueError):
            return False
        return (
            isinstance(text, str)
            and len(numbers) == n
            and bool(np.isfinite(numbers).all())
        )

    return are_right, f"base64 of {n} finite half-precision numbers"
