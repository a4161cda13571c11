"""Write the executed twin of every chapter and exercise: NN_name.py -> NN_name.ipynb.

``python tools/notebooks.py`` writes all of them, ``… 07`` those whose name starts with
07. The way is one: the .py file is the source.
"""

import asyncio
import json
import os
import re
import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[1]
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
MAX_BYTES = 500_000
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
ABSOLUTE_PATH = re.compile(
    rf"(?:(?<![\w.:/])/(?:home|root|tmp|Users)/|[A-Z]:\\\\|{re.escape(str(ROOT))})\S{{0,80}}"
)


def sources(root: Path = ROOT, prefix: str = "") -> list[Path]:
    """Return the .py sources in reading order, chapters before exercises."""
    folders = (root / "chapters", root / "chapters" / "exercises")
    return [path for folder in folders for path in sorted(folder.glob(f"{prefix}*.py"))]


def unexecuted(source: Path) -> NotebookNode:
    """Read a source as a notebook: stable cell ids, a named kernel, guards folded."""
    notebook = jupytext.read(source)
    notebook.metadata["kernelspec"] = KERNEL
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    prefix = cell_id_prefix(source)
    for index, cell in enumerate(notebook.cells):
        cell["id"] = f"{prefix}-{index:02}"
        if "guard" in cell.metadata.get("tags", []):
            cell.metadata["jupyter"] = {"source_hidden": True}
    return notebook


def cell_id_prefix(source: Path) -> str:
    """Return what the ids of a notebook's cells start with, unique in the book."""
    kind = "ex" if source.parent.name == "exercises" else "ch"
    return f"{kind}-{source.stem.replace('_', '-')}"[:56]


def executed(source: Path) -> NotebookNode:
    """Run a notebook from top to bottom in its folder, in a kernel of its own."""
    notebook = unexecuted(source)
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(source.parent)}},
    )
    with tempfile.TemporaryDirectory() as scratch:
        progress = str(Path(scratch) / "progress.json")
        client.execute(env=os.environ | {"MHA_TEACH_PROGRESS": progress})
    return clean(notebook)


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
        found.append(f"the notebook has {size} bytes; the limit is {MAX_BYTES}")
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


def main(prefixes: list[str]) -> None:
    if sys.platform == "win32":
        asyncio.set_event_loop_policy(asyncio.WindowsSelectorEventLoopPolicy())
    chosen = [path for prefix in prefixes or [""] for path in sources(prefix=prefix)]
    if not chosen:
        sys.exit(f"no chapter starts with {' or '.join(prefixes)}")
    for source in chosen:
        notebook = executed(source)
        if found := complaints(notebook):
            sys.exit("\n".join([f"{source.name}: not written", *found]))
        target = source.with_suffix(".ipynb")
        target.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
        print(f"wrote {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main(sys.argv[1:])
