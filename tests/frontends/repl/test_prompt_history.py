"""What comes from earlier: prompts on disk, and what a resumed session shows of itself."""

import pytest

from ostler.core.events import Notice, Reverted
from ostler.frontends.repl import prompt_history, replay_buffer
from ostler.frontends.repl.prompt_history import open_history
from ostler.frontends.repl.replay_buffer import ReplayBuffer
from ostler.rendering.style import Styler

PLAIN = Styler(enabled=False)
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
    monkeypatch.setattr(prompt_history, "MAX_FILE_BYTES", 2000)
    monkeypatch.setattr(prompt_history, "KEPT_BYTES", 1000)
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
    past = ReplayBuffer(PLAIN)
    past.add(ANY, ["one"])
    past.add(ANY, ["two", "three"])
    assert past.flush() == ["one", "two", "three"]
    assert past.flush() == []


def test_of_a_long_past_only_the_end_is_shown(monkeypatch):
    monkeypatch.setattr(replay_buffer, "MAX_LINES", 3)
    past = ReplayBuffer(PLAIN)
    for number in range(10):
        past.add(ANY, [f"line {number}"])
    assert past.flush() == ["  … 7 earlier lines: ostler sessions show", "line 7", "line 8", "line 9"]


@pytest.mark.req("SE-3")
def test_where_a_session_went_back_is_said():
    past = ReplayBuffer(PLAIN)
    past.add(ANY, ["taken back"])
    past.add(Reverted(1), [])
    assert "reverted here" in past.flush()[-1]
