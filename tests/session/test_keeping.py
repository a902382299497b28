"""What undo would not reach, told before the first effect and not again."""

import pytest

from ostler.session.keeping import Keeping

pytestmark = pytest.mark.req("EN-13")


class Uncovered:
    """An undo that leaves out what it is told to."""

    def __init__(self) -> None:
        self.paths = ["node_modules"]

    async def begin(self, turn_id):
        return list(self.paths)

    def living(self, turn_id):
        pass

    def resting(self, turn_id):
        pass

    async def finish(self, turn_id):
        pass


async def test_each_thing_is_named_once_in_a_session():
    undo = Uncovered()
    keeping = Keeping(undo, "s/")
    await keeping.begin("1").finish()  # no effect, nothing told
    second = keeping.begin("2")
    assert list(await second.ready()) == ["node_modules"]
    assert list(await second.ready()) == []
    await second.finish()
    undo.paths.append("dist")
    third = keeping.begin("3")
    assert list(await third.ready()) == ["dist"]
    await third.finish()
