"""Chromium, a file server and axe, which conftest.py makes fixtures of."""

import functools
import http.server
import os
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
LOCAL = "http://127.0.0.1:"


def missing(what: str) -> None:
    """Fail in continuous integration; elsewhere skip, and say what is missing."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


@contextmanager
def chromium():
    """Run the system's Chromium; nothing is downloaded."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        missing(f"no browser on the PATH: install one of {', '.join(NAMES)}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serve files as a plain web server would, without a line per request."""

    def log_message(self, *args):
        pass


@contextmanager
def file_server(folder: Path):
    """Serve a folder on a free port of this machine; the value is its address."""
    handler = functools.partial(QuietHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        # It looks for an order to stop ten times a second; by default, twice.
        thread = threading.Thread(target=server.serve_forever, args=(0.1,))
        thread.start()
        yield f"{LOCAL}{server.server_port}/"
        server.shutdown()
        thread.join()


class Reader:
    """Opens pages with every other host blocked, and keeps what went wrong on them."""

    def __init__(self, browser: Browser):
        self.browser = browser
        self.contexts = []
        self.problems = []

    def open(self, address: str, **options):
        """Open a page; ``options`` are Playwright's, such as color_scheme, viewport."""
        context = self.browser.new_context(**options)
        self.contexts.append(context)
        context.route("**/*", self.allow_local)
        page = context.new_page()
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("console", self.keep_errors)
        page.on("requestfailed", self.keep_failures)
        page.goto(address, wait_until="load")
        return page

    def allow_local(self, route):
        url = route.request.url
        if url.startswith((LOCAL, "data:", "blob:")):
            route.continue_()
        else:
            self.problems.append(f"asked another host: {url}")
            route.abort()

    def keep_failures(self, request):
        if request.failure != "net::ERR_ABORTED":  # what a page leaves when it is left
            self.problems.append(f"failed: {request.url}")

    def keep_errors(self, message):
        if message.type == "error":
            self.problems.append(f"console: {message.text}")

    def close(self):
        for context in self.contexts:
            context.close()


def axe_violations(page, axe: Path) -> list[str]:
    """Run axe on a page; one line per rule and element that it complains about."""
    page.evaluate(axe.read_text("utf-8"))
    result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{rule['id']}: {node['target']} {node.get('failureSummary')}"
        for rule in result["violations"]
        for node in rule["nodes"]
    ]
