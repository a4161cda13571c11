"""JupyterLab, started for a test and driven through a browser."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

TOKEN = "only-for-this-test"


class Lab:
    """A running JupyterLab, its folder and its address."""

    def __init__(self, folder: Path, port: int):
        self.folder = folder
        self.port = port

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}?token={TOKEN}"

    def ask(self, path: str):
        with urllib.request.urlopen(self.url(path), timeout=10) as answer:
            return json.load(answer)

    def is_up(self) -> bool:
        try:
            return "started" in self.ask("api/status")
        except urllib.error.URLError:
            return False

    def is_ready(self, name: str) -> bool:
        """Whether the kernel of a notebook waits for code."""
        states = {
            x["path"]: x["kernel"]["execution_state"] for x in self.ask("api/sessions")
        }
        return states.get(name) == "idle"


def wait_until(condition, pause) -> bool:
    """Ask for two minutes; ``pause`` takes milliseconds and lets a page go on."""
    for _ in range(240):
        if condition():
            return True
        pause(500)
    return False


@contextmanager
def jupyterlab(folder: Path, home: Path):
    """Run JupyterLab on a folder, apart from any configuration of this machine."""
    quiet = {
        "disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}
    }
    (home / "config" / "labconfig").mkdir(parents=True)
    (home / "config" / "labconfig" / "page_config.json").write_text(json.dumps(quiet))
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    names += ("JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR", "IPYTHONDIR")
    places = {name: str(home / name.lower()) for name in names}
    places["JUPYTER_CONFIG_DIR"] = str(home / "config")
    running = Lab(folder, free_port())
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += [
        "--ip=127.0.0.1",
        f"--port={running.port}",
        "--ServerApp.port_retries=0",
    ]
    command += [f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={folder}"]
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=os.environ | places, stdout=log, stderr=log
        )
    try:
        assert wait_until(running.is_up, lambda ms: time.sleep(ms / 1000)), (
            home / "log"
        ).read_text()[-3000:]
        yield running
    finally:
        process.terminate()
        process.wait(timeout=60)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def open_notebook(lab: Lab, reader, name: str, height: int = 6000):
    # JupyterLab leaves out cells that are not seen: hence the height.
    page = reader.open(
        lab.url(f"lab/tree/{name}") + "&reset",
        viewport={"width": 1366, "height": height},
    )
    page.set_default_timeout(120_000)
    wait_for_kernel(lab, page, name)
    return page


def wait_for_kernel(lab: Lab, page, name: str) -> None:
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    assert wait_until(lambda: lab.is_ready(name), page.wait_for_timeout)
    wait_until_idle(page)


def wait_until_idle(page) -> None:
    idle = '.jp-Notebook-ExecutionIndicator[data-status="idle"]'
    page.wait_for_selector(idle, state="attached")


def run_all(page) -> None:
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.locator('li[data-command="runmenu:run-all"]').click()


def cell(page, at: int):
    return page.locator(".jp-Notebook .jp-Cell").nth(at)


def run_cell(page, at: int) -> None:
    cell(page, at).locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
