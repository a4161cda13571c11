"""Copies of the chapters for a learner to work in, and the results beside them.

``my-work/`` holds them without outputs. A notebook there belongs to the learner: it
is written once, and again only when asked for by :func:`restore`. Pages, figures and
artifacts follow the book for as long as they are left as they were copied. The record
``.book.json`` says what that was; where it does not, nothing is overwritten: what may
be the learner's goes to ``my-work/old/``.
"""

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from itertools import count
from pathlib import Path

CHAPTERS = "chapters"
COPIES = "my-work"
OLD = "old"
FRONT_PAGE = "index.md"  # of the site; the learner starts at a notebook


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
            _put(source, copies, name)
            added.append(name)
        elif before == _edition(source):
            continue
        elif not _is_as_in_the_book(copy, source):
            if before is None:
                messages.append(_take_as_changed(source, copies, name))
            elif copy.suffix == ".ipynb":
                messages.append(
                    f"{name} has changed in the book; your copy stays as it is. "
                    + _how_to_reset(name)
                )
                continue
            elif _digest(copy) == before:
                _put(source, copies, name)
            else:
                continue
        copied[name] = _edition(source)
        _remember(copies, copied)
    return ([_added(added)] if added else []) + messages


def restore(root: Path, asked: str) -> tuple[Path, Path | None]:
    """Copy a file of the book anew; keep the old copy if its text was changed.

    Parameters
    ----------
    root
        The folder of the book.
    asked
        The number of a chapter, or of its exercises: ``07`` or ``7``, ``exercises/07``;
        or the name of any file: ``artifacts/heads_grid.json``.

    Returns
    -------
    tuple
        The fresh copy, and where the old one is now; None if there was none, or only
        its outputs differed: to run the fresh copy brings them back.

    Raises
    ------
    ValueError
        If the book has no such notebook or file.
    OSError
        If ``my-work/`` cannot be written; :func:`in_the_way` words it.
    """
    chapters, copies = root / CHAPTERS, root / COPIES
    files = set(_names(chapters))
    notebooks = {_short(n): n for n in sorted(files) if n.endswith(".ipynb")}
    folder, slash, number = asked.removeprefix(f"{COPIES}/").rpartition("/")
    name = notebooks.get(f"{folder}{slash}{number:0>2}", f"{folder}{slash}{number}")
    if not number or name not in files:
        raise ValueError(
            f"there is no notebook {asked!r} in the book, nor a file of this name; "
            "there are: " + ", ".join(notebooks)
        )
    source, copy = chapters / name, copies / name
    copied = _copied(copies) | {name: _edition(source)}
    changed = copy.exists() and not _is_as_in_the_book(copy, source)
    kept = _put(source, copies, name, keep=changed)
    _remember(copies, copied)
    return copy, kept


def artifact(name: str) -> dict:
    """Return the results that a chapter reads, from the folder beside it.

    To a copy anywhere in ``my-work/``, such as an old one, it is the one folder there.

    Parameters
    ----------
    name
        The name of a file in ``artifacts/``.

    Raises
    ------
    OSError
        If the file is missing or damaged; the message says how to bring it back.
    """
    folder = Path.cwd()
    copies = next(filter(_is_for_copies, (folder, *folder.parents)), None)
    path = Path("artifacts", name)
    try:
        text = Path(copies or "", path).read_text(encoding="utf-8")
        results = json.loads(text)
        if not isinstance(results, dict) or not results:
            raise ValueError(f"it holds {text[:20].strip()} and no results")
        return results
    except (OSError, ValueError, RecursionError) as error:
        if not copies and folder.name != CHAPTERS:
            raise OSError(
                f"{path} cannot be read in {folder} ({error}); "
                f"run a chapter in its own folder, {CHAPTERS}/ or {COPIES}/"
            ) from None
        command = "mha-teach reset" if copies else "git checkout --"
        raise OSError(
            f"{path} is missing or damaged ({error}); "
            f"in a terminal of JupyterLab, this brings it back: {command} "
            + (path.as_posix() if copies else f'"{path.resolve().as_posix()}"')
        ) from None


def in_the_way(error: OSError) -> str:
    """Return a sentence on why ``my-work/`` cannot be written, with a way out."""
    if error.errno is None:  # from book_folder: a sentence already
        return str(error)
    return (
        f"{COPIES} cannot be written: {error}; move away what is there under this "
        "name, or see to its permissions and the space on the disk, then try again"
    )


def _is_for_copies(folder: Path) -> bool:
    return folder.name == COPIES and (folder.parent / CHAPTERS).is_dir()


def _names(chapters: Path) -> Iterator[str]:
    """Yield what a learner needs: no sources of notebooks, no front page."""
    for path in sorted(chapters.rglob("*")):
        name = path.relative_to(chapters)
        hidden = any(part.startswith((".", "__")) for part in name.parts)
        left_out = path.suffix == ".py" or name == Path(FRONT_PAGE)
        if path.is_file() and not left_out and not hidden:
            yield name.as_posix()


def _short(name: str) -> str:
    """Return the number of a notebook, after its folder where it has one."""
    return name.partition("_")[0]


def _added(names: list[str]) -> str:
    notebooks = [name for name in names if name.endswith(".ipynb")]
    return f"Copied to {COPIES}: {', '.join(notebooks) or 'figures and pages'}"


def _how_to_reset(name: str) -> str:
    keeping = f"To take the new one and keep yours in {COPIES}/{OLD}"
    return f"{keeping}, in a terminal of JupyterLab: mha-teach reset {_short(name)}"


def _take_as_changed(source: Path, copies: Path, name: str) -> str:
    """Keep a copy that may be the learner's, and say where it is."""
    copy = copies / name
    unknown = f"It is not known whether you changed {name}"
    if copy.suffix == ".ipynb":
        return f"{unknown}; your copy stays as it is. {_how_to_reset(name)}"
    kept = _put(source, copies, name, keep=True).relative_to(copies.parent)
    return (
        f"{unknown}; it is now as the book has it, and yours is kept: {kept.as_posix()}"
    )


def _put(source: Path, copies: Path, name: str, keep: bool = False) -> Path | None:
    """Put a copy there in one go, and return where the old one is if it is kept."""
    copy = copies / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    part = copy.with_name(copy.name + ".part")
    try:
        part.write_bytes(_fresh(source))
        kept = _set_aside(copies, name) if keep else None
        os.replace(part, copy)
    finally:
        if part.is_file():
            part.unlink()
    return kept


def _fresh(source: Path) -> bytes:
    """Return what a copy holds when it is made."""
    if source.suffix == ".md":
        return _as_plain_markdown(source.read_text(encoding="utf-8")).encode()
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


def _is_as_in_the_book(copy: Path, source: Path) -> bool:
    """Compare all that a learner can change: of a notebook, not its outputs."""
    if not copy.is_file():
        return False
    if source.suffix != ".ipynb":
        return copy.read_bytes() == _fresh(source)
    try:
        return _without_outputs(copy) == _without_outputs(source)
    except Exception:  # nbformat raises many sorts where a file is no notebook
        return False


def _without_outputs(path: Path) -> list[dict]:
    import nbformat

    outputs = {"outputs", "execution_count"}
    cells = nbformat.read(path, as_version=4).cells
    return [{key: cell[key] for key in cell.keys() - outputs} for cell in cells]


def _as_plain_markdown(page: str) -> str:
    """Write the title and the targets of links as JupyterLab can show them."""
    if front := re.match(r"---\n(.*?\n)---\n", page, re.DOTALL):
        title = re.search(r"^title: *(['\"]?)(.+)\1$", front[1], re.MULTILINE)
        page = (f"# {title[2]}\n" if title else "") + page[front.end() :]
    return re.sub(r"(?m)^\(([^()\s]+)\)=\n", r'<a id="\1"></a>\n\n', page)


def _set_aside(copies: Path, name: str) -> Path:
    """Move a copy to the old ones, under a dated name."""
    copy, old = copies / name, copies / OLD / name
    old.parent.mkdir(parents=True, exist_ok=True)
    now = datetime.now().strftime("%Y-%m-%d_%H%M%S")
    names = (f"{old.stem}.{now}{'_' * n}{old.suffix}" for n in count())
    kept = map(old.with_name, names)
    return copy.rename(next(path for path in kept if not path.exists()))


def _edition(source: Path) -> str:
    """Return what the record says of a file: the digest of its copy.

    A notebook's is its own: to make a copy of it takes a second.
    """
    if source.suffix == ".ipynb":
        return _digest(source)
    return hashlib.sha256(_fresh(source)).hexdigest()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _copied(copies: Path) -> dict[str, str]:
    """Return the edition of the book's file that each copy was made from."""
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
    except KeyboardInterrupt:
        sys.exit(130)
    print(*messages, sep="\n", end="\n" if messages else "")


if __name__ == "__main__":
    _main()
