"""JupyterLab, started at a terminal as a reader starts it."""

import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from lab import Lab

ADDRESS = re.compile(r"(http://127\.\S+:\d+)/(lab/tree/\S+)\?token=(\w+)\n")


class Terminal(Lab):
    """A terminal without a screen, which shows where JupyterLab is."""

    def __init__(self, command: list, folder: Path, home: Path):
        self.ends = os.openpty()
        home.mkdir(exist_ok=True)
        self.shown = home / "terminal.txt"
        with self.shown.open("w") as out:
            self.process = subprocess.Popen(
                [*command, "--ServerApp.port_retries=50"],
                cwd=folder,
                env=no_screen(home),
                stdin=self.ends[1],
                stdout=out,
                stderr=out,
            )
        while not (match := ADDRESS.search(self.text())):
            assert self.process.poll() is None, self.text()
            time.sleep(0.1)
        self.server, self.path, self.token = match.groups()
        self.get(self.path)

    def text(self) -> str:
        return self.shown.read_text()

    def after_the_address(self) -> str:
        return self.text()[ADDRESS.search(self.text()).end() :]

    def url(self, path: str) -> str:
        return f"{self.server}/{path}?token={self.token}"

    def get(self, path: str) -> bytes:
        """Fetch a page; JupyterLab prints its address a little before it listens."""
        for _ in range(30):
            try:
                with urllib.request.urlopen(self.url(path), timeout=60) as answer:
                    return answer.read()
            except urllib.error.URLError:
                time.sleep(1)
        raise AssertionError(f"{self.url(path)} does not answer")

    def opens_its_notebook(self) -> bool:
        notebook = self.ask(self.path.replace("lab/tree", "api/contents", 1))
        return bool(notebook["content"]["cells"])

    def interrupt(self) -> int:
        """Press Ctrl-C and return the exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=60)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for end in self.ends:
            os.close(end)


def no_screen(home: Path) -> dict[str, str]:
    """Return the environment, but for the screen and the owner's Jupyter settings."""
    kept = {name: v for name, v in os.environ.items() if "DISPLAY" not in name}
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    names += ("JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR", "IPYTHONDIR")
    return kept | {name: str(home / name.lower()) for name in names}
