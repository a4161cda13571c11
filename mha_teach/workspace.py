"""Copies of the chapters for a learner to work in.

``my-work/`` holds them without outputs. A notebook there belongs to the learner: it
is written once, and again only when asked for by :func:`restore`. Pages, figures and
artifacts follow the book for as long as they are left as they were copied. The record
``.book.json`` says what that was; where it does not, nothing is overwritten.
"""

import hashlib
import json
import os
import sys
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
        the book since it was copied, or for each copy whose origin is not known.

    Raises
    ------
    OSError
        If ``my-work/`` cannot be written; :func:`in_the_way` words it.
    """
    chapters, copies = root / CHAPTERS, root / COPIES
    copies.mkdir(exist_ok=True)
    copied = _copied(copies)
    added, messages = [], []
    for name in _names(chapters):
        source, copy, before = chapters / name, copies / name, copied.get(name)
        if not copy.exists():
            os.replace(_write_beside(source, copy), copy)
            added.append(name)
        elif before == _digest(source):
            continue
        elif copy.read_bytes() != _fresh(source):
            if before is None:
                messages.append(_take_as_changed(source, copy, name))
            elif copy.suffix == ".ipynb":
                messages.append(
                    f"{name} has changed in the book; your copy stays as it is. "
                    + _how_to_reset(name)
                )
                continue
            elif _digest(copy) == before:
                os.replace(_write_beside(source, copy), copy)
            else:
                continue
        copied[name] = _digest(source)
        _remember(copies, copied)
    return ([_added(added)] if added else []) + messages


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
    OSError
        If ``my-work/`` cannot be written; :func:`in_the_way` words it.
    """
    chapters, copies = root / CHAPTERS, root / COPIES
    names = {_short(n): n for n in _names(chapters) if n.endswith(".ipynb")}
    if notebook not in names:
        raise ValueError(
            f"there is no notebook {notebook!r} in the book; there are: "
            + ", ".join(names)
        )
    name = names[notebook]
    source, copy = chapters / name, copies / name
    copied = _copied(copies) | {name: _digest(source)}
    part = _write_beside(source, copy)
    kept = _set_aside(copy) if copy.exists() else None
    os.replace(part, copy)
    _remember(copies, copied)
    return copy, kept


def in_the_way(error: OSError) -> str:
    """Return a sentence on why ``my-work/`` cannot be written, with a way out."""
    if error.errno is None:  # from book_folder: a sentence already
        return str(error)
    return (
        f"{COPIES} cannot be written: {error}; move away what is there under this "
        "name, or see to its permissions and the space on the disk, then try again"
    )


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


def _how_to_reset(name: str) -> str:
    return (
        f"To take the new one and keep yours beside it: mha-teach reset {_short(name)}"
    )


def _take_as_changed(source: Path, copy: Path, name: str) -> str:
    """Keep a copy that may be the learner's, and say where it is."""
    unknown = f"It is not known whether you changed {name}"
    if copy.suffix == ".ipynb":
        return f"{unknown}; your copy stays as it is. {_how_to_reset(name)}"
    part = _write_beside(source, copy)
    kept = Path(name).with_name(_set_aside(copy).name).as_posix()
    os.replace(part, copy)
    return f"{unknown}; it is now as the book has it, and yours is kept: {kept}"


def _write_beside(source: Path, copy: Path) -> Path:
    """Write what is to become the copy, so that it can be put there in one go."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    part = copy.with_name(copy.name + ".part")
    part.write_bytes(_fresh(source))
    return part


def _fresh(source: Path) -> bytes:
    """Return what a copy holds when it is made."""
    if source.suffix != ".ipynb":
        return source.read_bytes()
    import nbformat  # takes a second, and most starts copy nothing

    notebook = nbformat.read(source, as_version=4)
    for key in ("jupytext", "widgets"):
        notebook.metadata.pop(key, None)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return (nbformat.writes(notebook) + "\n").encode()


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
        record = json.loads((copies / ".book.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _remember(copies: Path, copied: dict[str, str]) -> None:
    part = copies / ".book.json.part"
    part.write_text(json.dumps(copied, indent=1), encoding="utf-8")
    os.replace(part, copies / ".book.json")


def _main() -> None:
    try:
        messages = refresh(book_folder())
    except OSError as error:
        sys.exit(in_the_way(error))
    print(*messages, sep="\n", end="\n" if messages else "")


if __name__ == "__main__":
    _main()
