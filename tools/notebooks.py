"""Write the executed twin of every chapter and exercise: NN_name.py -> NN_name.ipynb.

``python tools/notebooks.py`` writes all of them, ``… 07`` those whose name starts with
07. The way is one: the .py file is the source.
"""

import asyncio
import json
import logging
import os
import re
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import jupytext
import matplotlib
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[1]
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
MAX_BYTES = 500_000
FOLDED = {"guard", "figure", "solution"}  # tags of cells whose code is folded
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
ABSOLUTE_PATH = re.compile(
    r"(?:(?<![\w.:/])/(?:home|root|tmp|Users|mnt|opt)/|\bfile:///"
    rf"|[A-Z]:\\\\|(?<!\w)[A-Za-z]:/Users/|{re.escape(str(ROOT))})\S{{0,80}}"
)


class NotebookError(Exception):
    """A notebook cannot be written; the message names the file and says why."""


def sources(root: Path = ROOT, prefix: str = "") -> list[Path]:
    """Return the .py sources in reading order, chapters before exercises."""
    folders = (root / "chapters", root / "chapters" / "exercises")
    found = [path for folder in folders for path in sorted(folder.glob("*.py"))]
    return [path for path in found if path.name.startswith(prefix)]


def unexecuted(source: Path) -> NotebookNode:
    """Read a source as a notebook: stable cell ids, a named kernel, code folded."""
    notebook = jupytext.read(source)
    notebook.metadata["kernelspec"] = KERNEL
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    prefix = cell_id_prefix(source)
    for index, cell in enumerate(notebook.cells):
        cell["id"] = f"{prefix}-{index:02}"
        if FOLDED & tags(cell):
            cell.metadata["jupyter"] = {"source_hidden": True}
    return notebook


def tags(cell: NotebookNode) -> set[str]:
    """Return the tags of a cell."""
    return set(cell.metadata.get("tags", []))


def cell_id_prefix(source: Path) -> str:
    """Return what the ids of a notebook's cells start with, unique in the book."""
    kind = "ex" if source.parent.name == "exercises" else "ch"
    return f"{kind}-{source.stem.replace('_', '-')}"[:56]


def executed(source: Path) -> NotebookNode:
    """Run a notebook from top to bottom in its folder, in a kernel of its own.

    Raises
    ------
    NotebookError
        If a cell raises, runs for more than 120 s or ends the kernel.
    """
    notebook = unexecuted(source)
    started = []
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(source.parent)}},
        on_cell_start=lambda cell, cell_index: started.append(cell.id),
    )
    with tempfile.TemporaryDirectory() as scratch:
        progress = str(Path(scratch) / "progress.json")
        try:
            execute(client, env=os.environ | {"MHA_TEACH_PROGRESS": progress})
        except CellExecutionError as error:
            reason = f"raised {error.ename}: {error.evalue}"
            raise NotebookError(f"{source.name}: cell {started[-1]} {reason}") from None
        except (CellTimeoutError, DeadKernelError) as error:
            reason = f"did not end: {error}"
            raise NotebookError(f"{source.name}: cell {started[-1]} {reason}") from None
    return clean(notebook)


def execute(client: NotebookClient, env: dict[str, str]) -> None:
    """Run all cells in a thread: in the main one nbclient takes Ctrl-C for itself."""
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(asyncio.run, client.async_execute(env=env))
        try:
            running.result()
        except KeyboardInterrupt:
            client.log.setLevel(logging.CRITICAL)
            while not running.done():
                with suppress(AttributeError, ProcessLookupError):  # not yet, no more
                    os.kill(client.km.provisioner.pid, signal.SIGTERM)
                time.sleep(0.1)
            raise


def clean(notebook: NotebookNode) -> NotebookNode:
    """Drop what only a running kernel can use, and what changes from run to run."""
    for key in ("jupytext", "language_info", "widgets"):
        notebook.metadata.pop(key, None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "text/html" in data:
                data.pop(WIDGET_VIEW, None)
    return notebook


def complaints(notebook: NotebookNode) -> list[str]:
    """Say what keeps an executed notebook from being committed."""
    found = [
        f"cell {cell.id} {complaint}"
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        for complaint in output_complaints(output)
    ]
    if "widgets" in notebook.metadata:
        found.append("the notebook holds widget state")
    size = len(nbformat.writes(notebook).encode())
    if size > MAX_BYTES:
        largest = max(notebook.cells, key=lambda cell: len(json.dumps(cell)))
        found.append(
            f"cell {largest.id} is the largest of the notebook's {size} bytes; "
            f"the limit is {MAX_BYTES}"
        )
    return found


def output_complaints(output: NotebookNode) -> list[str]:
    """Say what is wrong with one output."""
    found = []
    data = output.get("data", {})
    if output.get("name") == "stderr":
        found.append(f"writes to stderr: {output.text[:200]}")
    if WIDGET_VIEW in data:
        found.append("shows a widget that needs a kernel; display text/html as well")
    if any(kind.startswith("image/") for kind in data):
        found.append("shows a bare image; use plots.show")
    if path := ABSOLUTE_PATH.search(json.dumps(output)):
        found.append(f"holds an absolute path: {path[0]}")
    return found


def files(folder: Path) -> dict[Path, int]:
    """Return when each file in a folder was changed, caches left out."""
    caches = {"__pycache__", ".ipynb_checkpoints"}
    return {
        path: path.stat().st_mtime_ns
        for path in folder.rglob("*")
        if path.is_file() and caches.isdisjoint(path.parts)
    }


def write(source: Path) -> Path:
    """Write the executed twin of a source, if it is fit to be committed.

    Raises
    ------
    NotebookError
        If a cell fails, an output is unfit, or a file in the folder changed meanwhile.
    """
    before = files(source.parent)
    notebook = executed(source)
    found = complaints(notebook)
    after = files(source.parent)
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            name = path.relative_to(source.parent).as_posix()
            found.append(
                f"{name} was written, changed or removed while the cells ran; "
                "let them work in a temporary folder"
            )
    if found:
        raise NotebookError("\n".join([f"{source.name}: not written", *found]))
    target = source.with_suffix(".ipynb")
    part = target.with_name(target.name + ".part")
    try:
        part.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
        return part.replace(target)
    except OSError as error:
        reason = f"{error}; see to its permissions and the space on the disk"
        raise NotebookError(f"{source.name}: not written\n{reason}") from None


def main(prefixes: list[str]) -> None:
    if sys.platform == "win32":
        asyncio.set_event_loop_policy(asyncio.WindowsSelectorEventLoopPolicy())
    chosen = [path for prefix in prefixes or [""] for path in sources(prefix=prefix)]
    if not chosen:
        sys.exit(f"no chapter starts with {' or '.join(map(repr, prefixes))}")
    # Where it cannot write, it says so here, and not in a notebook.
    matplotlib.get_configdir()
    for source in chosen:
        try:
            target = write(source)
        except NotebookError as error:
            sys.exit(str(error))
        except KeyboardInterrupt:
            print(f"\nInterrupted; {source.with_suffix('.ipynb').name} is as it was.")
            sys.exit(130)
        print(f"wrote {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main(sys.argv[1:])
