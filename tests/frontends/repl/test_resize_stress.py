"""Resizes a tmux window many times while an answer streams; each word must be shown exactly once.

`OSTLER_STORMS=20` sets the number of runs; `-s` prints the result of each.
"""

import os
import random
import re
import shutil
import time
from collections import Counter

import pytest
from tests.frontends.repl.talk import CLEARS, at

from ostler.testing.model_server import text

STORMS = int(os.environ.get("OSTLER_STORMS", "3"))
LINES, RESIZES, PAUSE = 400, 50, 0.015
COLUMNS, ROWS = (40, 201), (10, 51)
AT_LAST = (200, 30)  # wide enough for the draft
STEPS = (0.0, 0.01, 0.05, 0.3, 0.6, 0.8)  # some are long enough for the window to settle
WORD = re.compile(r"[wd]\d+\.\d+\b")
DRAFTS = (0, 4, 29)  # words: none, some, and more than fit into a narrow window
LAST = "d1.0"
ONCE = ("> talk", "↑ ANSWER", "· model:", "context")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


def answer(chance):
    """Return unique words and a text of them; some lines are longer than any window."""
    said = [[f"w{row}.{column}" for column in range(chance.choice((1, 2, 5, 60)))] for row in range(LINES)]
    return [word for row in said for word in row], "\n\n".join(" ".join(row) for row in said)


def resize_randomly(term, chance):
    for _ in range(RESIZES):
        term.resize(chance.randrange(*COLUMNS), chance.randrange(*ROWS))
        time.sleep(chance.choice(STEPS))
    term.resize(*AT_LAST)
    term.told(*AT_LAST)


def find_problems(shown, words, draft):
    """Return unexpected lines, and missing, repeated or misplaced words."""
    bare = [line.rstrip() for line in shown if line.strip() and not WORD.search(line)]
    for mark in ONCE:
        bare.remove(next((line for line in bare if mark in line), f"no {mark}"))
    found = WORD.findall("\n".join(shown))
    counted = Counter(found)
    return {
        "pieces": bare,
        "lost": [word for word in (*words, *draft) if not counted[word]],
        "doubled": [word for word, times in counted.items() if times > 1],
        "disordered": list(dict.fromkeys(found)) != [word for word in (*words, *draft) if counted[word]],
    }


@pytest.mark.req("CL-1", "CL-6")
@pytest.mark.parametrize("seed", range(STORMS))
def test_many_resizes_leave_no_artifacts(tmux, models, tmp_path, seed):
    chance = random.Random(seed)
    words, said = answer(chance)
    draft = [f"d0.{number}" for number in range(DRAFTS[seed % len(DRAFTS)])]
    with models.playing(text(said, chunks=len(words) // 4).with_pause(PAUSE)) as server:
        term = tmux("chat", *at(server), columns=120, rows=30)
        term("pipe-pane", f"cat > {tmp_path / 'raw'}")
        term.wait_for("context empty")
        term.type("talk")
        term.press("Enter")
        term.wait_for("w3.0")
        term.type(" ".join(draft))
        resize_randomly(term, chance)
        meanwhile = "↑ ANSWER" not in "\n".join(term.lines())
        term.wait_for("↑ ANSWER")
        term.wait_for("context 0%")
        term.type(f" {LAST}")
        term.wait_for(LAST)
    left = find_problems(term.lines(joined=True), words, [*draft, LAST])
    clears = len(CLEARS.findall((tmp_path / "raw").read_bytes()))
    print(f"storm {seed}: {left}, {clears} clears, streamed to its end: {meanwhile}")
    assert (left, clears) == ({"pieces": [], "lost": [], "doubled": [], "disordered": False}, 0)
