"""The prompt history on disk, and the replay of a resumed session."""

import pytest

from ostler.core.events import Notice, Reverted
from ostler.frontends.repl import replay_buffer
from ostler.frontends.repl.line_editor import open_history
from ostler.frontends.repl.replay_buffer import ReplayBuffer
from ostler.interaction import prompt_history
from ostler.rendering.style import Styler

PLAIN = Styler(enabled=False)
ANY = Notice("info", "x")


async def loaded(path):
    return [entry async for entry in open_history(path).load()]


@pytest.mark.req("CL-1")
async def test_multi_line_prompts_are_loaded_newest_first(tmp_path):
    file = tmp_path / "new" / "prompts"
    history = open_history(file)
    history.store_string("one")
    history.store_string("two\nlines 你好")
    assert await loaded(file) == ["two\nlines 你好", "one"]
    assert file.stat().st_mode & 0o777 == 0o600


async def test_too_large_history_keeps_its_newest_prompts(tmp_path, monkeypatch):
    monkeypatch.setattr(prompt_history, "MAX_FILE_BYTES", 2000)
    monkeypatch.setattr(prompt_history, "BYTES_AFTER_TRIM", 1000)
    file = tmp_path / "prompts"
    history = open_history(file)
    for number in range(100):
        history.store_string(f"prompt {number}\nof two lines")
    prompts = await loaded(file)
    assert prompts[0] == "prompt 99\nof two lines"
    assert 5 < len(prompts) < 100
    assert set(map(len, prompts)) <= {21, 22}
    assert file.stat().st_size <= 1000


def test_replay_is_shown_once():
    replay = ReplayBuffer(PLAIN)
    replay.add(ANY, ["one"])
    replay.add(ANY, ["two", "three"])
    assert replay.flush() == ["one", "two", "three"]
    assert replay.flush() == []


def test_only_the_end_of_a_long_replay_is_shown(monkeypatch):
    monkeypatch.setattr(replay_buffer, "MAX_LINES", 3)
    replay = ReplayBuffer(PLAIN)
    for number in range(10):
        replay.add(ANY, [f"line {number}"])
    assert replay.flush() == ["  … 7 earlier lines: ostler sessions show", "line 7", "line 8", "line 9"]


@pytest.mark.req("SE-3")
def test_reverts_are_marked():
    replay = ReplayBuffer(PLAIN)
    replay.add(ANY, ["taken back"])
    replay.add(Reverted(1), [])
    assert "reverted here" in replay.flush()[-1]
