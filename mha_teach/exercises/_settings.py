"""What a check runs under, and how all is put back after it, interrupted or not."""

import random
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import torch
from torch.backends import cuda

_DEVICES = ("cpu", "cuda")


def _use_deterministic_algorithms(debug_mode: int) -> None:
    torch.use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def _autocast() -> tuple[bool, ...]:
    return tuple(torch.is_autocast_enabled(device) for device in _DEVICES)


def _set_autocast(enabled: tuple[bool, ...]) -> None:
    for device, is_on in zip(_DEVICES, enabled, strict=True):
        torch.set_autocast_enabled(device, is_on)


def _autocast_dtypes() -> tuple[torch.dtype, ...]:
    return tuple(map(torch.get_autocast_dtype, _DEVICES))


def _set_autocast_dtypes(dtypes: tuple[torch.dtype, ...]) -> None:
    for device, dtype in zip(_DEVICES, dtypes, strict=True):
        torch.set_autocast_dtype(device, dtype)


def _matmul_precision() -> str:
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # it was set by the newer fp32_precision
        return ""


def _set_matmul_precision(precision: str) -> None:
    if precision and _matmul_precision() != precision:  # to set it changes more
        torch.set_float32_matmul_precision(precision)


def _anomaly() -> tuple[bool, bool]:
    return torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()


def _set_anomaly(modes: tuple[bool, bool]) -> None:
    torch.set_anomaly_enabled(*modes)


def _taken_by_name(write: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda values: write(**values)


_SETTINGS = (
    (torch.get_default_dtype, torch.set_default_dtype),
    (_matmul_precision, _set_matmul_precision),
    (_autocast, _set_autocast),
    (_autocast_dtypes, _set_autocast_dtypes),
    (torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
    (_anomaly, _set_anomaly),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.get_deterministic_debug_mode, _use_deterministic_algorithms),
    (cuda.math_sdp_enabled, cuda.enable_math_sdp),  # on a CPU, too
    (cuda.flash_sdp_enabled, cuda.enable_flash_sdp),
    (cuda.mem_efficient_sdp_enabled, cuda.enable_mem_efficient_sdp),
    (cuda.cudnn_sdp_enabled, cuda.enable_cudnn_sdp),
    (np.get_printoptions, _taken_by_name(np.set_printoptions)),
    (np.geterr, _taken_by_name(np.seterr)),
)
_RANDOM_STATES = (
    (random.getstate, random.setstate),
    (np.random.get_state, np.random.set_state),  # noqa: NPY002
    (torch.get_rng_state, torch.set_rng_state),
)


@contextmanager
def neutral() -> Iterator[None]:
    """Run under float32 and with gradients, whatever the notebook has set."""
    with warnings.catch_warnings(), kept():
        torch.set_default_dtype(torch.float32)
        _set_matmul_precision(_matmul_precision() and "highest")
        _set_autocast((False, False))
        _set_anomaly((False, True))
        yield


@contextmanager
def kept() -> Iterator[None]:
    """Restore the random states and torch's settings that an answer may change."""
    settings = [read() for read, _ in _SETTINGS]
    states = [read() for read, _ in _RANDOM_STATES]
    try:
        # inference_mode(False) lets gradients be taken, and restores both in the end.
        with torch.inference_mode(False), _on_cpu():
            yield
    finally:
        for (read, write), value in zip(_SETTINGS, settings, strict=True):
            if read() != value:
                write(value)
        for (_, write), state in zip(_RANDOM_STATES, states, strict=True):
            write(state)


@contextmanager
def _on_cpu() -> Iterator[None]:
    """Make the CPU, where inputs are drawn, the default device for a while."""
    device = torch.get_default_device()
    # A default device is a mode: it leads every call through Python, is in the way of
    # torch.compile, and an interrupt in one of these calls may leave it set.
    if device.type != "cpu":
        torch.set_default_device("cpu")
    try:
        yield
    finally:
        torch.set_default_device(None)
        if torch.get_default_device() != device:
            torch.set_default_device(device)


class Interrupts:
    """Ctrl-C during a check: it waits while something is set or put back.

    Elsewhere it is raised at once. ``finally`` alone is not enough, since an interrupt
    may strike in the block itself, or between a context's entry and its first line.
    """

    def __init__(self) -> None:
        self._handler: Any = None
        self._is_let_through = False
        self._is_waiting = False

    def __enter__(self) -> "Interrupts":
        handler = signal.getsignal(signal.SIGINT)
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and callable(handler):  # no other thread is ever interrupted
            self._handler = handler
            signal.signal(signal.SIGINT, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        if self._handler:
            signal.signal(signal.SIGINT, self._handler)
        if self._is_waiting:
            self._handler(signal.SIGINT, None)

    def within(
        self, manager: AbstractContextManager, function: Callable, *arguments: Any
    ) -> Any:
        """Call a function in a context that is entered and left undisturbed."""
        before, self._is_let_through = self._is_let_through, False
        try:
            with manager:
                try:
                    self._let_through(True)
                    return function(*arguments)
                finally:
                    self._is_let_through = False
        finally:
            self._let_through(before)

    def _let_through(self, is_let_through: bool) -> None:
        self._is_let_through = is_let_through
        if is_let_through and self._is_waiting:
            self._receive(signal.SIGINT, None)

    def _receive(self, number: int, frame: Any) -> None:
        self._is_waiting = not self._is_let_through
        if self._is_let_through:
            self._is_let_through = False
            self._handler(number, frame)  # usually raises KeyboardInterrupt
            self._is_let_through = True
