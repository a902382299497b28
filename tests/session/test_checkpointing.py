"""Paths that undo cannot restore are reported before the first side effect, once."""

import pytest

from ostler.session.checkpointing import Checkpointer

pytestmark = pytest.mark.req("EN-13")


class PartialUndo:
    """An undo with some uncovered paths."""

    def __init__(self) -> None:
        self.paths = ["node_modules"]

    async def begin(self, turn_id):
        return list(self.paths)

    def heartbeat(self, turn_id):
        pass

    def mark_idle(self, turn_id):
        pass

    async def discard(self, turn_id):
        pass

    async def finish(self, turn_id):
        pass


async def test_uncovered_path_is_reported_once_per_session():
    undo = PartialUndo()
    checkpointer = Checkpointer(undo, "s/")
    await checkpointer.start("1").finish()  # no side effect, nothing reported
    second = checkpointer.start("2")
    assert list(await second.wait_ready()) == ["node_modules"]
    assert list(await second.wait_ready()) == []
    await second.finish()
    undo.paths.append("dist")
    third = checkpointer.start("3")
    assert list(await third.wait_ready()) == ["dist"]
    await third.finish()
