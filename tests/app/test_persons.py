"""What the prompt uses of a machine, by itself."""

import threading

import pytest

from ostler.app.options import RunOptions
from ostler.app.persons import PersonsServices


class SlowIndex:
    """Knows its names at the second look."""

    def __init__(self):
        self.whole = threading.Event()
        self.looks = 0

    def refresh(self):
        pass

    def find(self, wanted):
        self.looks += 1
        if self.looks > 1:
            self.whole.set()
        return ["main.py"] if self.whole.is_set() else []


@pytest.mark.req("CL-4")
async def test_candidates_come_when_the_first_look_around_took_longer_than_the_key(tmp_path):
    services = PersonsServices(tmp_path, RunOptions(str(tmp_path)), None)
    services._index = SlowIndex()
    assert await services.files("main") == ["main.py"]


@pytest.mark.req("CL-4")
async def test_a_path_outside_is_not_waited_for(tmp_path):
    services = PersonsServices(tmp_path, RunOptions(str(tmp_path)), None)
    assert await services.files("/nothing/like/this") == []
