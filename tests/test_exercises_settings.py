"""A check runs under torch's own settings, and puts back what it found, always."""

import contextlib
import random
import signal
import sys
import threading

import numpy as np
import pytest
import torch

from mha_teach.exercises import EXERCISES, _settings, _trial, evaluate
from mha_teach.exercises.bank import Exercise, Property


def halves(x):
    return x / 2


TINY = Exercise(
    id="00-tiny",
    title="Half of it",
    kind="write",
    level=1,
    minutes=1,
    points=1,
    reference=halves,
    draw=lambda draw: {"x": draw.normal(2)},
    axes={"x": "n", "returns": "n"},
    properties=(Property("halves", "each entry is halved", "What is half of it?"),),
    hints=(),
    explanation="",
    wrong=(),
    right=(),
)


def settings():
    """All but Python's own random state, which the checks of annotations draw from."""
    return {
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),
        "modes": torch._C._len_torch_function_stack(),  # one for a device that is set
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "matmul": torch.get_float32_matmul_precision(),
        "anomaly": (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        "stdout": sys.stdout,
        "signal": signal.getsignal(signal.SIGINT),
        "numpy": np.random.get_state()[1].tolist(),  # noqa: NPY002
        "torch": torch.get_rng_state().tolist(),
    }


def neutral():
    return {name: settings()[name] for name in ("dtype", "device", *SWITCHES)}


SWITCHES = ("grad", "inference", "autocast", "matmul", "anomaly")


@contextlib.contextmanager
def float64():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextlib.contextmanager
def coarse_products():
    torch.set_float32_matmul_precision("medium")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision("highest")


NOTEBOOKS = {
    "float64": float64,
    "no gradients": torch.no_grad,
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu"),
    "coarse products": coarse_products,
    "anomaly": lambda: torch.autograd.set_detect_anomaly(True),
    "meta": lambda: torch.device("meta"),
}


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("notebook", NOTEBOOKS.values(), ids=NOTEBOOKS)
def test_an_answer_runs_under_the_same_settings_whatever_the_notebooks(notebook):
    seen = []

    def looks_around(x):
        seen.append(neutral())
        return x / 2

    usual = neutral()
    with notebook():
        before = settings()
        assert evaluate(TINY, looks_around).passed
        assert settings() == before
    assert seen
    assert all(found == usual for found in seen)


def test_a_precision_under_its_newer_name_is_no_obstacle():
    """Torch refuses to read the older one then."""
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    try:
        assert evaluate(TINY, halves).passed
        assert torch.backends.mkldnn.matmul.fp32_precision == "bf16"
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("notebook", NOTEBOOKS.values(), ids=NOTEBOOKS)
@pytest.mark.parametrize("exercise_id", ["01-bug", "01-lookup", "04-attention"])
def test_a_right_answer_is_right_in_any_notebook(exercise_id, notebook):
    exercise = EXERCISES[exercise_id]
    with notebook():
        for right in (exercise.reference, *exercise.right):
            report = evaluate(exercise, right)
            assert report.passed, str(report)


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("notebook", NOTEBOOKS.values(), ids=NOTEBOOKS)
def test_a_wrong_answer_is_wrong_in_any_notebook(notebook):
    attention = EXERCISES["04-attention"]
    with notebook():
        for wrong in attention.wrong:
            assert evaluate(attention, wrong.answer).first_failure.name == wrong.fails


@pytest.mark.parametrize("name", [name for name in NOTEBOOKS if name != "meta"])
def test_what_an_answer_leaves_on_does_not_reach_the_next(name):
    left_on = []

    def leaves_on(x):
        context = NOTEBOOKS[name]()
        context.__enter__()
        left_on.append(context)  # else it may end with its last name
        return x / 2

    before = settings()
    assert evaluate(TINY, leaves_on).passed
    assert settings() == before


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("notebook", NOTEBOOKS.values(), ids=NOTEBOOKS)
def test_a_worked_solution_shows_the_same_values_in_any_notebook(notebook):
    nearest = EXERCISES["01-nearest"]
    usual = nearest.remarks()
    with notebook():
        assert nearest.remarks() == usual


def fails_later(x):
    fails_later.calls += 1
    raise OSError("torch.softmax is gone")


def test_an_error_of_the_reference_is_not_the_answers_fault():
    broken = TINY.__class__(**{**vars(TINY), "reference": fails_later})
    fails_later.calls = 0
    report = evaluate(broken, halves)
    assert fails_later.calls
    assert str(report.first_failure.failure) == (
        "    expected  a worked solution that runs\n"
        "    got       OSError: torch.softmax is gone, in the solution itself\n"
        "    question  Your answer is not to blame. Is a part of torch replaced? "
        "Restart the kernel."
    )


# Interrupted at any place


@pytest.fixture(autouse=True)
def _as_at_a_terminal():
    """Ctrl-C raises, also where the tests were started in the background."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, usual)


def interrupt():
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_stops_an_answer_at_once():
    reached = []

    def interrupted(x):
        interrupt()
        reached.append(x)

    before = settings()
    with pytest.raises(KeyboardInterrupt):
        evaluate(TINY, interrupted)
    assert not reached
    assert settings() == before


RESTORING = (
    (random, "setstate"),
    (np.random, "set_state"),
    (torch, "set_rng_state"),
    (torch, "set_default_dtype"),
    (torch, "set_default_device"),
    (torch, "set_autocast_enabled"),
    (torch, "set_anomaly_enabled"),
    (contextlib.redirect_stdout, "__enter__"),
    (contextlib.redirect_stdout, "__exit__"),
)


@pytest.mark.parametrize(("owner", "name"), RESTORING, ids=lambda part: str(part)[-20:])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_interrupt_waits_while_something_is_put_back(
    owner, name, moment, monkeypatch
):
    put_back = getattr(owner, name)

    def interrupted(*args):
        if moment == "before":
            interrupt()
        result = put_back(*args)
        if moment == "after":
            interrupt()
        return result

    def noisy(x):
        torch.set_default_dtype(torch.float64)
        torch.manual_seed(5)
        return x / 2

    before = settings()
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, interrupted)
        for table in ("_SETTINGS", "_RANDOM_STATES"):
            pairs = getattr(_settings, table)
            pairs = [(r, interrupted if w is put_back else w) for r, w in pairs]
            patch.setattr(_settings, table, pairs)
        with pytest.raises(KeyboardInterrupt):
            evaluate(TINY, noisy)
    assert settings() == before


def interrupted_at(number):
    """Evaluate an answer, and interrupt at one of the steps of the bytecode."""
    files = {_settings.__file__, _trial.__file__, contextlib.__file__}
    steps = 0

    def trace(frame, event, argument):
        nonlocal steps
        if frame.f_code.co_filename not in files:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            steps += 1
            if steps == number:
                interrupt()
        return trace

    sys.settrace(trace)
    try:
        evaluate(TINY, halves)
    finally:
        sys.settrace(None)
    return steps


@pytest.mark.slow
def test_an_interrupt_at_any_step_leaves_all_as_it_was(capsys):
    tracer = sys.gettrace()
    before = settings()
    try:
        interrupted_at(None)  # the first time takes more steps
        steps = interrupted_at(None)
        for number in range(1, steps + 1):
            with pytest.raises(KeyboardInterrupt):
                interrupted_at(number)
            assert settings() == before, number
    finally:
        sys.settrace(tracer)


def test_a_handler_that_does_not_raise_is_called_each_time(monkeypatch):
    received = []
    usual = signal.signal(signal.SIGINT, lambda *_: received.append(_))
    try:
        assert evaluate(TINY, lambda x: interrupt() or interrupt() or x / 2).passed
    finally:
        signal.signal(signal.SIGINT, usual)
    assert len(received) == 4  # two in each call: a stub is looked for first


def test_a_check_runs_outside_the_main_thread():
    reports = []
    thread = threading.Thread(target=lambda: reports.append(evaluate(TINY, halves)))
    thread.start()
    thread.join()
    assert reports[0].passed
