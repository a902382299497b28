"""Fixtures for model tests: clients that do not sleep."""

import sys
import time
from pathlib import Path

import pytest

from ostler.models.client_factory import NetworkConfig, make_client
from ostler.models.retry import RetryPolicy
from ostler.models.stall_detector import StallTimeouts

sys.path.insert(0, str(Path(__file__).parent))


class RecordedSleeps:
    """A `sleep` that returns immediately and records the seconds."""

    def __init__(self):
        self.seconds = []

    async def __call__(self, seconds):
        self.seconds.append(seconds)


@pytest.fixture
def sleeps():
    return RecordedSleeps()


@pytest.fixture
def client(sleeps):
    """Return a factory of clients with short timeouts that do not sleep between retries."""

    def make(server, kind="openai", *, attempts=3, timeouts=None, retries=None, clock=time.monotonic, **values):
        network = NetworkConfig(
            environ={},
            timeouts=timeouts or StallTimeouts(notice=0.05, first=2.0, silent=2.0, tick=0.02),
            retry_policy=retries or RetryPolicy(attempts=attempts, sleep=sleeps, jitter=lambda: 1.0),
            clock=clock,
        )
        values.setdefault("base_url", server.base_url if server else "")
        return make_client(api_kind=kind, network=network, **({"model": "m", "api_key": "sk-test-1234"} | values))

    return make
