"""Signals call their functions only while the block runs."""

import asyncio
import os
import signal

import pytest

from ostler.interaction.signals import ALL_STOP_SIGNALS, handled_signals


async def test_function_is_called_and_the_handler_is_removed_afterwards():
    before, received = signal.getsignal(signal.SIGTERM), asyncio.Event()
    with handled_signals({signal.SIGTERM: received.set}):
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(30):
            await received.wait()
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.req("CL-8")
async def test_hangup_ignored_by_nohup_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with handled_signals(dict.fromkeys(ALL_STOP_SIGNALS, lambda: None)):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
