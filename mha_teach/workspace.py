"""Copies of the chapters for a learner to work in.

``my-work/`` holds them without outputs. A notebook there belongs to the learner: it
is written once, and again only when asked for by :func:`restore`. Pages, figures and
artifacts follow the book for as long as they are left as they were copied.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from datetime import datetime
from itertools import count
from pathlib import Path

CHAPTERS = "chapters"
COPIES = "my-work"


def book_folder() -> Path:
    """Return the folder of the clone that this package was installed from.

    Raises
    ------
    FileNotFoundError
        If the package was installed without its book.
    """
    root = Path(__file__).resolve().parents[1]
    if not (root / CHAPTERS).is_dir():
        raise FileNotFoundError(
            f"there is no {CHAPTERS} folder in {root}; work in a clone of the book, "
            "installed with `python3 book.py lab` or `pip install -e .`"
        )
    return root


def refresh(root: Path) -> list[str]:
    """Bring ``my-work/`` up to date and say what the learner has to know.

    Parameters
    ----------
    root
        The folder of the book.

    Returns
    -------
    list of str
        One sentence on what was added, and one for each notebook that has changed in
        the book since it was copied.
    """
    chapters, copies = root / CHAPTERS, root / COPIES
    copies.mkdir(exist_ok=True)
    copied = _copied(copies)
    added, changed = [], []
    for name in _names(chapters):
        source, copy, before = chapters / name, copies / name, copied.get(name)
        if not copy.exists():
            copied[name] = _copy(source, copy)
            added.append(name)
        elif before not in (None, _digest(source)):
            if copy.suffix == ".ipynb":
                changed.append(name)
            elif _digest(copy) == before:
                copied[name] = _copy(source, copy)
    _remember(copies, copied)
    messages = [_added(added)] if added else []
    return messages + [
        f"{name} has changed in the book; your copy stays as it is. To take the new "
        f"one and keep yours beside it: mha-teach reset {_short(name)}"
        for name in changed
    ]


def restore(root: Path, notebook: str) -> tuple[Path, Path | None]:
    """Copy a notebook of the book anew; keep the learner's under a dated name.

    Parameters
    ----------
    root
        The folder of the book.
    notebook
        The number of a chapter, or of its exercises: ``07``, ``exercises/07``.

    Returns
    -------
    tuple
        The fresh copy, and what the old one is called now; None if there was none.

    Raises
    ------
    ValueError
        If the book has no such notebook.
    """
    chapters, copies = root / CHAPTERS, root / COPIES
    names = {_short(n): n for n in _names(chapters) if n.endswith(".ipynb")}
    if notebook not in names:
        raise ValueError(
            f"there is no notebook {notebook!r} in the book; there are: "
            + ", ".join(names)
        )
    name = names[notebook]
    copy = copies / name
    kept = _set_aside(copy) if copy.exists() else None
    _remember(copies, _copied(copies) | {name: _copy(chapters / name, copy)})
    return copy, kept


def _names(chapters: Path) -> Iterator[str]:
    """Yield what a learner needs of a folder: all but the notebooks' sources."""
    for path in sorted(chapters.rglob("*")):
        name = path.relative_to(chapters)
        hidden = any(part.startswith((".", "__")) for part in name.parts)
        if path.is_file() and path.suffix != ".py" and not hidden:
            yield name.as_posix()


def _short(name: str) -> str:
    """Return the number of a notebook, after its folder where it has one."""
    return name.partition("_")[0]


def _added(names: list[str]) -> str:
    notebooks = [name for name in names if name.endswith(".ipynb")]
    return f"Copied to {COPIES}: {', '.join(notebooks) or 'figures and pages'}"


def _copy(source: Path, copy: Path) -> str:
    """Write a copy in one go, so that no half-written one is taken for a learner's."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    part = copy.with_name(copy.name + ".part")
    if source.suffix == ".ipynb":
        _write_without_outputs(source, part)
    else:
        part.write_bytes(source.read_bytes())
    os.replace(part, copy)
    return _digest(source)


def _write_without_outputs(source: Path, copy: Path) -> None:
    import nbformat  # takes a second, and most starts copy nothing

    notebook = nbformat.read(source, as_version=4)
    for key in ("jupytext", "widgets"):
        notebook.metadata.pop(key, None)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(notebook, copy)


def _set_aside(copy: Path) -> Path:
    now = datetime.now().strftime("%Y-%m-%d_%H%M%S")
    names = (f"{copy.stem}.{now}{'_' * n}{copy.suffix}" for n in count())
    kept = map(copy.with_name, names)
    return copy.rename(next(path for path in kept if not path.exists()))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _copied(copies: Path) -> dict[str, str]:
    """Return what the book's file was, by its digest, when each copy was made."""
    try:
        return json.loads((copies / ".book.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}


def _remember(copies: Path, copied: dict[str, str]) -> None:
    record = json.dumps(copied, indent=1)
    (copies / ".book.json").write_text(record, encoding="utf-8")


if __name__ == "__main__":
    for message in refresh(book_folder()):
        print(message)
