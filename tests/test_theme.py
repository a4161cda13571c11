"""The site's theme: its bundle, its unit tests, and the page trees they run on."""

import json
import os
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
THEME = ROOT / "theme"
SAMPLES = THEME / "test" / "samples"
BUILT = ["bundle.mjs", "public/vendor"]
VOLATILE = {"id", "key", "position", "sha256"}

pytestmark = pytest.mark.site


def files_in(folder, names):
    """Return relative path -> bytes of every file below some names of a folder."""
    found = {}
    for name in names:
        top = folder / name
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            if path.is_file():
                found[path.relative_to(folder).as_posix()] = path.read_bytes()
    return found


def test_the_committed_bundle_is_what_the_sources_build(theme_build):
    rebuilt, committed = files_in(theme_build, BUILT), files_in(THEME, BUILT)
    assert rebuilt.keys() == committed.keys()
    changed = [name for name in rebuilt if rebuilt[name] != committed[name]]
    assert changed == [], "run `npm ci && npm run build` in theme/"


def test_the_renderer(theme_build):
    tests = sorted((theme_build / "test").glob("*.test.mjs"))
    assert tests
    result = subprocess.run(
        ["node", "--test", "--test-reporter=spec", *tests],
        cwd=theme_build,
        capture_output=True,
        encoding="utf-8",
    )
    assert result.returncode == 0, result.stdout


def lasting(node):
    """Drop what MyST draws at random, and the hashes it makes of paths."""
    if isinstance(node, list):
        return [lasting(item) for item in node]
    if isinstance(node, dict):
        return {k: lasting(v) for k, v in node.items() if k not in VOLATILE}
    return re.sub(r"[0-9a-f]{32}", "0" * 32, node) if isinstance(node, str) else node


def test_the_samples_are_what_the_pinned_myst_makes(sample_site):
    """After a change of test/project: UPDATE_SAMPLES=1 pytest tests/test_theme.py."""
    made = sorted((sample_site.parent / "site" / "content").glob("*.json"))
    for path in made:
        tree = lasting(json.loads(path.read_text("utf-8")))
        sample = SAMPLES / path.name
        if os.environ.get("UPDATE_SAMPLES"):
            text = json.dumps(tree, indent=1, ensure_ascii=False)
            sample.write_text(text + "\n", "utf-8")
        assert json.loads(sample.read_text("utf-8")) == tree, path.name
    assert sorted(p.name for p in SAMPLES.iterdir()) == [p.name for p in made]


def test_the_lock_file_pins_everything_and_names_no_registry():
    lock = json.loads((THEME / "package-lock.json").read_text("utf-8"))
    manifest = json.loads((THEME / "package.json").read_text("utf-8"))
    wanted = manifest["devDependencies"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert all("integrity" in entry for entry in packages.values())
    assert not any("resolved" in entry for entry in packages.values())
    for name, version in wanted.items():
        assert packages[f"node_modules/{name}"]["version"] == version


def test_katex_is_the_version_that_myst_renders_formulas_with():
    """MyST writes the HTML of a formula; the theme ships the style sheet for it."""
    myst = resources.files("mystmd_py").joinpath("myst.cjs").read_text("utf-8")
    [inside] = set(re.findall(r"katex@([\d.]+)/", myst))
    manifest = json.loads((THEME / "package.json").read_text("utf-8"))
    assert manifest["devDependencies"]["katex"] == inside


def test_the_footer_shows_the_version_of_the_package():
    project = re.search(
        r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.M
    )
    site = yaml.safe_load((ROOT / "myst.yml").read_text("utf-8"))["site"]
    assert site["options"]["version"] == project[1]


def test_public_files_load_nothing_from_another_host():
    addresses = re.compile(r"https?://(?!www\.w3\.org/)")
    for path in (THEME / "public").glob("*.*"):
        assert not addresses.search(path.read_text("utf-8")), path.name


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_a_theme_outside_the_project_writes_nothing(tmp_path):
    """The theme writes only into the empty folder that MyST made for it."""
    theme = tmp_path / "theme"
    theme.mkdir()
    shutil.copy(THEME / "bundle.mjs", theme)
    output = tmp_path / "output"
    output.mkdir()
    (output / "precious.txt").write_text("mine")
    result = subprocess.run(
        ["node", "bundle.mjs", "render"],
        cwd=theme,
        env={**os.environ, "BUILD_DIRECTORY": "output", "CONTENT_CDN": "unused"},
        capture_output=True,
        encoding="utf-8",
    )
    assert result.returncode != 0
    assert "is not MyST's empty output folder" in result.stderr
    assert sorted(path.name for path in output.iterdir()) == ["precious.txt"]
