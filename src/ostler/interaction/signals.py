"""Calls functions for signals while a frontend runs."""

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

STOP_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
ALL_STOP_SIGNALS = (signal.SIGINT, *STOP_SIGNALS)


@contextmanager
def handled_signals(handlers: Mapping[signal.Signals, Callable[[], object]]) -> Iterator[None]:
    """Call these functions in the event loop for their signals. A hangup that is ignored, by `nohup`, stays so."""
    loop = asyncio.get_running_loop()
    ignores_hangup = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    numbers = [number for number in handlers if number != signal.SIGHUP or not ignores_hangup]
    for number in numbers:
        loop.add_signal_handler(number, handlers[number])
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
