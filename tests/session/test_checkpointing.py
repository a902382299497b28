"""What undo would not reach, told before the first effect and not again."""

import pytest

from ostler.session.checkpointing import Checkpointer

pytestmark = pytest.mark.req("EN-13")


class Uncovered:
    """An undo that leaves out what it is told to."""

    def __init__(self) -> None:
        self.paths = ["node_modules"]

    async def begin(self, turn_id):
        return list(self.paths)

    def heartbeat(self, turn_id):
        pass

    def mark_idle(self, turn_id):
        pass

    async def finish(self, turn_id):
        pass


async def test_each_thing_is_named_once_in_a_session():
    undo = Uncovered()
    keeping = Checkpointer(undo, "s/")
    await keeping.start("1").finish()  # no effect, nothing told
    second = keeping.start("2")
    assert list(await second.wait_ready()) == ["node_modules"]
    assert list(await second.wait_ready()) == []
    await second.finish()
    undo.paths.append("dist")
    third = keeping.start("3")
    assert list(await third.wait_ready()) == ["dist"]
    await third.finish()
