"""What comes from earlier: prompts on disk, and what a resumed session shows of itself."""

import pytest

from ostler.drawing.paint import Paint
from ostler.faces.repl import history, replay
from ostler.faces.repl.history import open_history
from ostler.faces.repl.replay import Replay
from ostler.vocabulary.events import Notice, Reverted

PLAIN = Paint(on=False)
ANY = Notice("info", "x")


async def loaded(path):
    return [entry async for entry in open_history(path).load()]


@pytest.mark.req("CL-1")
async def test_prompts_of_several_lines_come_back_newest_first(tmp_path):
    file = tmp_path / "new" / "prompts"
    kept = open_history(file)
    kept.store_string("one")
    kept.store_string("two\nlines 你好")
    assert await loaded(file) == ["two\nlines 你好", "one"]
    assert file.stat().st_mode & 0o777 == 0o600


async def test_a_history_that_grew_too_large_keeps_its_newest_prompts_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(history, "LARGEST", 2000)
    monkeypatch.setattr(history, "KEPT", 1000)
    file = tmp_path / "prompts"
    kept = open_history(file)
    for number in range(100):
        kept.store_string(f"prompt {number}\nof two lines")
    prompts = await loaded(file)
    assert prompts[0] == "prompt 99\nof two lines"
    assert 5 < len(prompts) < 100
    assert set(map(len, prompts)) <= {21, 22}
    assert file.stat().st_size <= 1000


def test_the_past_is_shown_once():
    past = Replay(PLAIN)
    past.take(ANY, ["one"])
    past.take(ANY, ["two", "three"])
    assert past.over() == ["one", "two", "three"]
    assert past.over() == []


def test_of_a_long_past_only_the_end_is_shown(monkeypatch):
    monkeypatch.setattr(replay, "MOST_LINES", 3)
    past = Replay(PLAIN)
    for number in range(10):
        past.take(ANY, [f"line {number}"])
    assert past.over() == ["  … 7 earlier lines: ostler sessions show", "line 7", "line 8", "line 9"]


@pytest.mark.req("SE-3")
def test_where_a_session_went_back_is_said():
    past = Replay(PLAIN)
    past.take(ANY, ["taken back"])
    past.take(Reverted(1), [])
    assert "went back" in past.over()[-1]
