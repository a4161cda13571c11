"""A plain page of explorers, and what the tests read on it."""

from pathlib import Path

PHONE = {"width": 320, "height": 640}
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Explorers</title><style>
:root { color-scheme: light dark; }
body { margin: 0 auto; max-width: 46rem; padding: 8px; font: 1rem/1.6 sans-serif; }
[data-theme="dark"] body { background: #16181c; color: #e8e8e8; }
[data-theme="light"] body { background: #ffffff; color: #1a1a1a; }
</style></head><body><main><h1>Explorers</h1>%s</main></body></html>"""


def html_of(explorer) -> str:
    return explorer._repr_mimebundle_()["text/html"]


def figure(page, at: int = 0):
    return page.locator("figure").nth(at)


def texts(part, selector: str) -> list[str]:
    return [" ".join(text.split()) for text in part.locator(selector).all_inner_texts()]


def saved(page, button: str) -> bytes:
    with page.expect_download() as download:
        page.get_by_role("button", name=button).click()
    return Path(download.value.path()).read_bytes()


FAKE_MODEL = """<div id="here"></div><script type="module">
import widget from "./module.mjs";
const state = %s;
const listeners = {};
const model = {
  get: name => state[name],
  set(name, value) { state[name] = value; listeners[`change:${name}`]?.(); },
  on(name, listener) { listeners[name] = listener; },
  save_changes() { throw new Error("no kernel"); },
  off() { throw new Error("not offered"); },
};
const here = document.getElementById("here");
const stop = widget.render({ model, el: here });
Object.assign(window, { model, here, stop });
</script>"""
