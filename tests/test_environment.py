"""One list of dependencies: the locks, conda's file and the workflows follow it."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from rattler import MatchSpec
from rattler.exceptions import InvalidMatchSpecError

from mha_teach import cli
from mha_teach.models import packaged

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT / "requirements"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
DEPENDENCIES = [Requirement(line) for line in PROJECT["dependencies"]]
TEST = [Requirement(line) for line in PROJECT["optional-dependencies"]["test"]]
LOCK = (REQUIREMENTS / "lock.txt").read_text("utf-8")
TEST_LOCK = (REQUIREMENTS / "test.txt").read_text("utf-8")
CONDA = (ROOT / "environment.yml").read_text("utf-8")

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
CONDA_NAMES = {"pytorch": "torch"}
NOT_LOCKED = re.compile(r"torch$|triton$|cuda-|nvidia-")
HOST = re.compile(r"\w+://[^\s;]+|--(?:index|extra|find|trusted)[\w-]*")


class Pin(NamedTuple):
    """One block of a lock: a name, its version, and how many hashes it has."""

    name: str
    version: str
    hashes: int


def pins(lock: str) -> Iterator[Pin]:
    for block in re.split(r"^(?=\w)", lock, flags=re.MULTILINE)[1:]:
        name, version = re.match(r"([\w.-]+)==([^\s;]+)", block).groups()
        hashes = len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", block))
        yield Pin(canonicalize_name(name), version, hashes)


def lock_problems(lock: str, needs: list[Requirement]) -> list[str]:
    """Say where a lock does not pin what is needed, unmistakably."""
    found = list(pins(lock))
    problems = [f"{pin.name} has no hash" for pin in found if not pin.hashes]
    problems += [f"{pin.name} is locked" for pin in found if NOT_LOCKED.match(pin.name)]
    problems += [f"{match} is named" for match in HOST.findall(lock)]
    for need in needs:
        name = canonicalize_name(need.name)
        versions = [pin.version for pin in found if pin.name == name]
        if not versions:
            problems.append(f"{name} is missing")
        bad = [version for version in versions if version not in need.specifier]
        problems += [f"{name} {version} is out of range" for version in bad]
    return problems


def but_torch(needs: list[Requirement]) -> list[Requirement]:
    return [need for need in needs if need.name != "torch"]


def test_lock_holds_every_dependency_with_its_hashes():
    assert lock_problems(LOCK, but_torch(DEPENDENCIES)) == []


def test_test_lock_adds_the_test_tools():
    assert lock_problems(LOCK + TEST_LOCK, TEST) == []


def test_the_two_locks_share_nothing():
    assert not {pin.name for pin in pins(LOCK)} & {pin.name for pin in pins(TEST_LOCK)}


def test_a_learner_installs_no_test_tools():
    tools = {"pytest", "nbval", "playwright", "py-rattler", "ruff", "uv", "hypothesis"}
    assert tools <= {pin.name for pin in pins(TEST_LOCK)}


HASH = "--hash=sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("lock", "problem"),
    [
        ("", "numpy is missing"),
        (f"numpy==1.26.4 \\\n    {HASH}\n", "numpy 1.26.4 is out of range"),
        ("numpy==2.4.6\n", "numpy has no hash"),
        ("numpy==2.4.6 \\\n    --hash=sha256:b9a0\n", "numpy has no hash"),
        (f"--index-url=x\nnumpy==2.4.6 {HASH}\n", "--index-url is named"),
        (f"numpy==2.4.6 {HASH}\nnvidia-nvtx==1 {HASH}\n", "nvidia-nvtx is locked"),
        (f"numpy==2.4.6 {HASH}\ntorch==2.13.0 {HASH}\n", "torch is locked"),
    ],
)
def test_a_bad_lock_is_noticed(lock, problem):
    assert problem in lock_problems(lock, [Requirement("numpy>=2.0")])


def needs_of(distribution: str) -> Iterator[Requirement]:
    for line in metadata.requires(distribution) or []:
        need = Requirement(line)
        if need.marker is None or need.marker.evaluate({"extra": ""}):
            yield need


def test_the_lock_holds_what_pytorch_needs_but_cuda():
    needs = [n for n in needs_of("torch") if not NOT_LOCKED.match(n.name)]
    assert {"sympy", "networkx"} <= {need.name for need in needs}
    assert lock_problems(LOCK, needs) == []


def test_the_lock_is_closed_on_this_machine():
    """What is installed without its needs being looked up has them all the same."""
    locked = {pin.name for pin in chain(pins(LOCK), pins(TEST_LOCK))}
    installed = {canonicalize_name(d.name) for d in metadata.distributions()}
    for name in locked & installed:
        needed = {canonicalize_name(need.name) for need in needs_of(name)}
        assert needed <= locked, name


def test_the_lock_holds_what_builds_the_package():
    build = [Requirement(line) for line in PYPROJECT["build-system"]["requires"]]
    assert lock_problems(LOCK, build) == []


def test_torch_has_one_version_inside_its_range_and_one_index():
    text = (REQUIREMENTS / "torch.txt").read_text("utf-8")
    found = re.findall(r"^torch==(\S+) ; sys_platform (==|!=) \"linux\"$", text, re.M)
    (linux, equal), (others, unequal) = found
    assert (linux, equal, unequal) == (f"{others}+cpu", "==", "!=")
    (need,) = [need for need in DEPENDENCIES if need.name == "torch"]
    assert others in need.specifier
    assert HOST.findall(text) == ["--extra-index-url", CPU_INDEX]


def test_models_are_those_that_the_package_knows_each_with_its_hash():
    text = (REQUIREMENTS / "models.txt").read_text("utf-8")
    assert lock_problems(text, []) == []
    entries = {model.name: model.distribution for model in cli._packaged_models()}
    assert entries == {name: known.distribution for name, known in packaged.items()}
    assert len(entries) == len(list(pins(text)))


def test_the_wheel_holds_every_file_of_the_package(tmp_path):
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "mha_teach", source / "mha_teach", ignore=ignored)
    own = ("pyproject.toml", "mha_teach_command.py")
    for name in (*own, PROJECT["readme"], *PROJECT["license-files"]):
        shutil.copy(ROOT / name, source)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    build += ["--no-build-isolation", f"--wheel-dir={tmp_path}", source]
    subprocess.run(build, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if "dist-info" not in name}
    files = [path for path in (ROOT / "mha_teach").rglob("*") if path.is_file()]
    names = {path.relative_to(ROOT).as_posix() for path in files}
    expected = {name for name in names if "__pycache__" not in name}
    assert "mha_teach/jupyter/labconfig/default_setting_overrides.json" in expected
    assert packed == expected | {"mha_teach_command.py"}


def listed_by_pip(lines: list[str]) -> tuple[set[str], set[str]]:
    """Return the packages that pip is to install, and the extras asked for."""
    names, extras = set(), set()
    for line in lines:
        if line.startswith("-r "):
            text = (ROOT / line.removeprefix("-r ")).read_text("utf-8")
            names |= set(re.findall(r"^([\w-]+)==", text, re.MULTILINE))
        elif match := re.fullmatch(r"-e \.(?:\[(.+)\])?", line):
            extras |= set((match[1] or "").split(",")) - {""}
            names |= {need.name for need in DEPENDENCIES}
            for extra in extras:
                more = PROJECT["optional-dependencies"][extra]
                names |= {Requirement(line).name for line in more}
        else:
            names.add(Requirement(line).name)
    return names, extras


def conda_problems(text: str) -> list[str]:
    """Say where conda's file is malformed, or not the project's list."""
    file = yaml.safe_load(text)
    lines = [line for line in file["dependencies"] if isinstance(line, str)]
    (pip,) = [line["pip"] for line in file["dependencies"] if not isinstance(line, str)]
    problems = []
    if file["channels"] != ["conda-forge"]:
        problems.append(f"channels are {file['channels']}")
    specs = {}
    for line in lines:
        try:
            spec = MatchSpec(line, strict=True)
        except InvalidMatchSpecError as error:
            problems.append(f"{line}: {error}")
        else:
            specs[spec.name.normalized] = str(spec.version)
    python = specs.pop("python", "none").removeprefix("==").removesuffix(".*")
    if python not in SpecifierSet(PROJECT["requires-python"]):
        problems.append(f"python is {python}")
    if specs.pop("pip", None) is None:
        problems.append("pip is missing")
    from_pip, extras = listed_by_pip(pip)
    found = from_pip | {CONDA_NAMES.get(name, name) for name in specs}
    expected = {need.name for need in DEPENDENCIES}
    for extra in extras:
        more = PROJECT["optional-dependencies"][extra]
        expected |= {Requirement(line).name for line in more}
    problems += [f"{name} is missing" for name in sorted(expected - found)]
    problems += [f"{name} is not in pyproject" for name in sorted(found - expected)]
    return problems


def test_conda_gets_the_projects_list():
    assert conda_problems(CONDA) == []


WRITTEN_OUT = "\n      - ".join(str(need) for need in DEPENDENCIES)
WITHOUT_NUMPY = WRITTEN_OUT.replace("numpy>=2.0", "click")


@pytest.mark.parametrize(
    ("line", "instead", "problem"),
    [
        ("- -e .", f"- {WITHOUT_NUMPY}", "numpy is missing"),
        ("- -e .", "- click", "jupyterlab is missing"),
        ("- -e .", "- -e .\n      - einops", "einops is not in pyproject"),
        ("- pip\n", "- pip\n  - scipy\n", "scipy is not in pyproject"),
        ("- pip\n", "- numpy>=2\n", "pip is missing"),
        ("- conda-forge", "- defaults", "channels are ['defaults']"),
        ("python=3.11", "python=3.10", "python is 3.10"),
        ("python=3.11", "python>=3 <4", "python>=3 <4: "),
        ("- pip\n", "- pip\n  - numpy==2.\n", "numpy==2.: "),
    ],
)
def test_a_bad_conda_file_is_noticed(line, instead, problem):
    assert line in CONDA
    problems = conda_problems(CONDA.replace(line, instead))
    assert any(found.startswith(problem) for found in problems), problems


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("- -e .", f"- {WRITTEN_OUT}"),
        ("- -r requirements/torch.txt\n", "- numpy\n"),
        ("- pip\n", "- pip\n  - pytorch>=2.13,<3\n"),
        ("- -e .", "- -e .[test]"),
    ],
)
def test_another_way_to_write_the_same_list_passes(line, instead):
    assert line in CONDA
    assert conda_problems(CONDA.replace(line, instead)) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no mode for what can be run")
@pytest.mark.parametrize("script", ["postBuild", ".ci/run"])
def test_scripts_can_be_run(script):
    path = ROOT / script
    assert path.stat().st_mode & 0o100
    subprocess.run(["bash", "-n", path], check=True)


def test_binder_gets_the_font_that_doctor_asks_for():
    assert (ROOT / "apt.txt").read_text().split() == ["fonts-noto-cjk"]


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_are_careful(path):
    workflow = yaml.safe_load(path.read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["group"]
    for job in workflow["jobs"].values():
        steps = [step for step in job["steps"] if "uses" in step]
        for step in steps:
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])


def test_the_matrix_has_three_systems_with_the_oldest_python():
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text("utf-8"))
    matrix = workflow["jobs"]["systems"]["strategy"]["matrix"]
    systems = {system.partition("-")[0] for system in matrix["os"]}
    assert systems == {"ubuntu", "macos", "windows"}
    oldest, newest = matrix["python"]
    assert PROJECT["requires-python"] == f">={oldest}"
    assert newest > oldest


def test_citation_file():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["title"]
    assert citation["message"]
    assert citation["authors"] == [{"name": "The authors of mha_teach"}]
    assert citation["version"] == PROJECT["version"]
    assert " AND ".join(citation["license"]) == PROJECT["license"]


@pytest.mark.parametrize("name", PROJECT["license-files"])
def test_licences_name_the_authors(name):
    text = (ROOT / name).read_text("utf-8")
    assert "The authors of mha_teach" in text


def test_the_text_of_the_creative_commons_licence_is_whole():
    words = (ROOT / "LICENSE-TEXT").read_text("utf-8").split()
    sections = re.findall(r"Section (\d) --", " ".join(words))
    assert sections == list("12345678")
    assert words[-1] == "creativecommons.org."
