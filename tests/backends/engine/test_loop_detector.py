"""Loops are detected and legitimate repetition is not: a corpus of traces, and the plugin in real turns."""

import itertools

import pytest
from engine_harness import Model, Reply, script

from ostler.backends.engine.plugins.repetition import (
    STOP_SIMILAR_AT,
    RepetitionDetector,
    is_polling,
    is_repetitive,
    is_waiting,
    step_fingerprint,
)
from ostler.core.events import MessageDone, Reminded
from ostler.core.tools import ToolCall, ToolResult
from ostler.testing.fake_tool import FakeTool

pytestmark = pytest.mark.req("EN-12")

CALLS = {
    "test": ("bash", {"command": "pytest -x"}, "1 failed in 0.{n}s"),
    "read": ("read", {"path": "a.py"}, "1: x = 1"),
    "read b": ("read", {"path": "b.py"}, "1: y = 2"),
    "grep": ("grep", {"pattern": "main", "path": "."}, "no matches"),
    "edit": ("edit", {"path": "a.py", "old": "x", "new": "y"}, "a.py: `old` was not found"),
    "edit back": ("edit", {"path": "a.py", "old": "y", "new": "x"}, "updated a.py"),
    "list": ("list", {"path": "src"}, "a.py\nb.py"),
    "crash": ("bash", {"command": "./run"}, "Segmentation fault at 0x7f{n}00 (core dumped)"),
    "log": ("bash", {"command": "cat log"}, "12:00:{n} error: no such table"),
    "denied": ("bash", {"command": "git push"}, "Refused."),
    "todo": ("todoread", {}, "The todo list is empty."),
}


def step(*names, n=0):
    """Return one step with these calls and results; `n` varies the irrelevant details."""
    pairs = []
    for name in names:
        tool, arguments, result = CALLS[name]
        status = "failed" if "not found" in result else "ok"
        call = ToolCall(f"c{n}", tool, dict(reversed(arguments.items())) if n % 2 else arguments)
        pairs.append((call, ToolResult(call.id, status, result.format(n=10 + n))))
    return pairs


BEFORE = ([], [step("list")], [step("list"), step("grep"), step("read", "read b")])
PERIODS = (
    *[[(name,)] for name in CALLS],
    *[[(a,), (b,)] for a, b in itertools.combinations(["test", "read", "edit", "crash"], 2)],
    [("edit",), ("edit back",)],
    [("read", "read b"), ("test",)],
    [("read", "read b")],
    [("read",), ("grep",), ("edit",)],
    [("test",), ("read",), ("read b",)],
    [("edit",), ("test",), ("edit back",), ("test",)],
    [("read",), ("edit",), ("test",), ("log",)],
)
LOOPS = [(before, period) for before in BEFORE for period in PERIODS]
# Repeated commands with irrelevant differences; `{n}` is another number each time.
DISGUISED = {
    **{
        command: "x = 1"
        for command in (
            "cat a # try {n}",
            "cat a   # attempt number {n}, wait for it",
            "cat a #{n}",
            "# try {n}\ncat a",
            "cat a\n# that was {n}",
            "cat 'a' # status {n}",
            "sed -n 1,20p a.py # again ({n})",
        )
    },
    "cat a{spaces}": "x = 1",
    "cat{spaces}a": "x = 1",
    "pytest -x 2>&1 | tail -5  # run {n}": "1 failed in 0.{n}s",
    "go test ./...": "--- FAIL: TestA (0.0{n}s)\nFAIL\tx\t0.1{n}s",
    "npm test": "Tests: 1 failed\nTime:        1.2{n} s",
    "pytest --basetemp": "E  /tmp/pytest-of-me/pytest-{n}/x is not there\n1 failed in 0.{n}s",
    "python gen.py": "wrote /tmp/tmpabc{n}xyz1, then failed",
    "curl -s localhost/x": "error, request 0a1b2c3d-0000-4000-8000-00000000000{n}",
    "./serve": "pid 12{n}: address in use",
}


# Commands that differ only in text they print themselves: other calls, but the same work.
PRINTED = {
    "cat a; : {n}": "x = 1",
    "true {n} && cat a": "x = 1",
    "echo try {n}; cat a": "try {n}\nx = 1",
    'echo "--- {n} ---" && cat a': "--- {n} ---\nx = 1",
    "cat a; echo done {n}": "x = 1\ndone {n}",
    "cat a || echo 'failed {n}'": "x = 1",
    "printf '%s' {n}; cat a": "x = 1",
    "echo trying {n}": "trying {n}",
    "echo run-{n} && ls": "run-{n}\na.txt",
}


def disguised_trace(command, result, count=3):
    texts = [(command.format(n=n, spaces=" " * n), result.format(n=n)) for n in range(1, count + 1)]
    return [
        step_of("bash", {"command": command_text, "reason": f"try {n}"}, output)
        for n, (command_text, output) in enumerate(texts)
    ]


def verdicts(trace):
    detector, found = RepetitionDetector(), []
    for pairs in trace:
        calls = [call for call, _ in pairs]
        found.append(detector.add_step(step_fingerprint(pairs), waiting=is_waiting(calls), polling=is_polling(calls)))
    return found


def test_loops_are_detected_within_three_periods():
    caught = 0
    for before, period in LOOPS:
        rounds = [step(*names, n=index) for index, names in enumerate(period * 3)]
        found = verdicts([*before, *rounds])
        caught += "stop" in found
        assert "nudge" in found[: found.index("stop")] if "stop" in found else True
    missed = [
        command for command, result in DISGUISED.items() if "stop" not in verdicts(disguised_trace(command, result))
    ]
    caught += len(DISGUISED) - len(missed)
    assert len(LOOPS) >= 50 and len(missed) <= 1, missed
    assert caught / (len(LOOPS) + len(DISGUISED)) >= 0.95


@pytest.mark.parametrize("command", PRINTED)
def test_calls_with_other_printed_text_are_stopped_late(command):
    found = verdicts(disguised_trace(command, PRINTED[command], STOP_SIMILAR_AT))
    assert found.index("nudge") <= 2
    assert found.index("stop") == STOP_SIMILAR_AT - 1


def step_of(tool, arguments, result, status="ok"):
    call = ToolCall("c", tool, arguments)
    return [(call, ToolResult("c", status, result))]


def polling(command, results):
    return [step_of("bash", {"command": command}, result) for result in results]


def windows(path, count):
    return [
        step_of("read", {"path": path, "offset": n * 100, "limit": 100}, "the same boilerplate") for n in range(count)
    ]


def repairing(count, check="pytest"):
    """Edit and test in turn: every edit differs, the failure may stay the same."""
    edits = [step_of("edit", {"path": "a.py", "old": f"x{n}", "new": f"y{n}"}, "updated a.py") for n in range(count)]
    return [part for edit in edits for part in (edit, step_of("bash", {"command": check}, "1 failed in 0.5s"))]


def twice(pairs):
    return [pairs, pairs, step_of("write", {"path": "out", "content": "x"}, "created out")]


LEGITIMATE = {
    **{f"build at {n} %": polling("make status", [f"{p * n}% built" for p in range(8)]) for n in range(1, 13)},
    **{f"sleeping for {n} s": polling(f"sleep {n}; cat state", ["pending"] * 6) for n in range(1, 13)},
    **{
        f"a job read {n} times": [step_of("bash", {"action": "read", "job": "1", "wait": 30}, "(no new output)")] * n
        for n in range(2, 14)
    },
    **{f"{c}, unchanged": polling(c, ["pending"] * 6) for c in ("cat status.txt", "./job_status", "kubectl get state")},
    "a status file": [step_of("read", {"path": "out/progress.json"}, "1: 40 %")] * 6,
    **{f"windows of {n}": windows(f"f{n}.py", 8) for n in range(12)},
    **{f"fixing: {check}": repairing(8, check) for check in ("pytest", "go test", "cargo test", "npm test", "make")},
    **{f"twice {name}": twice(step(name)) for name in CALLS},
    **{f"a, b, a, {name}": [step("read"), step("grep"), step("read"), step(name)] for name in CALLS},
    **{
        f"queue of {n}": polling("queue next", [f"job {k}" for k in range(n)]) for n in range(5, 15)
    },
    **{
        f"search {word}": [step_of("grep", {"pattern": f"{word}{n}"}, "no matches") for n in range(8)]
        for word in ("alpha", "beta", "gamma", "delta", "main", "todo")
    },
    **{
        f"files of {n}": [step_of("write", {"path": f"m{k}.py", "content": ""}, "created") for k in range(n)]
        for n in range(5, 15)
    },
    **{
        f"{word} with another value": [step_of("bash", {"command": f"{word} {n}"}, "no matches") for n in range(6)]
        for word in ("grep -n", "./try --seed", "git show HEAD~", "curl localhost:80", "echo $((1 +")
    },
    "seconds that pass": polling("gh run view 7", [f"running, elapsed {n}s" for n in range(10, 70, 10)]),
    "steps that are taken": polling("./build", [f"step {n} of 9" for n in range(6)]),
    "versions": polling("./next", [f"1.{n}" for n in range(6)]),
    "values before a command": [step_of("bash", {"command": f"SEED={n} ./try"}, "1 failed") for n in range(6)],
    "written by echo": [step_of("bash", {"command": f"echo {n} > part{n}"}, "(no output)") for n in range(6)],
    "sent by echo": [step_of("bash", {"command": f"echo {n} | ./ask"}, "no") for n in range(6)],
    "echo of other words": [step_of("bash", {"command": f"echo now {w}"}, f"now {w}") for w in ("a", "b", "c", "d")],
    "here-documents": [step_of("bash", {"command": f"cat > f{n} <<X\n# {n}\nX"}, "(no output)") for n in range(6)],
    "quotes over lines": [step_of("bash", {"command": f"python -c 'x\n = {n}'"}, "SyntaxError") for n in range(6)],
    "different files": [step_of("bash", {"command": f"cat a{n} # the same again"}, "empty") for n in range(6)],
    "a colour in a page": [step_of("bash", {"command": f"grep '#{n}{n}{n}' a.css"}, "no matches") for n in range(6)],
    **{
        f"CI run {n}": polling("gh run view", [f"elapsed {k}m{n}s" for k in range(8)]) for n in range(10, 16)
    },
}  # fmt: skip


def test_legitimate_repetition_is_not_stopped():
    stopped = [name for name, trace in LEGITIMATE.items() if "stop" in verdicts(trace)]
    assert len(LEGITIMATE) >= 100
    assert len(stopped) <= 1, stopped


def test_polling_is_reminded_early_and_stopped_late():
    found = verdicts(polling("cat status.txt", ["pending"] * 12))
    assert found[:2] == ["", "nudge"]
    assert found.index("stop") == 7
    assert "stop" in verdicts(polling("cat statues.txt", ["pending"] * 3))


PARAGRAPH = "Now I will look at the configuration file to see whether the setting is there, and then I will decide. "
LOOPING_TEXTS = {
    "a sentence": "Let me check that again. " * 60,
    "after an honest start": "I read the file. It has two functions." + "\nWait, I should look at it again." * 40,
    "a paragraph": (PARAGRAPH * 3 + "\n") * 3,
    "two lines": "First, a.\nThen, b.\n" * 60,
    "Chinese": "让我再检查一遍。" * 150,
    "cut in mid-word": ("Let me check that again. " * 60)[:-7],
}
LEGITIMATE_TEXTS = {
    "a rule": "-" * 3000,
    "a table of zeros": "0, " * 1000,
    "few lines of code": "```html\n" + '<li class="item"><a href="#">Link</a></li>\n' * 40,
    "thrice the same short words": "No. No. No.",
    "a numbered list": "\n".join(f"{n}. Look at file {n} and fix it." for n in range(200)),
    "an answer": PARAGRAPH + "Done.",
    "the same sentence far apart": "".join(f"{PARAGRAPH}Step {n} is done.\n" for n in range(5)),
    "nothing": "",
}


@pytest.mark.parametrize("name", LOOPING_TEXTS)
def test_repetitive_texts(name):
    assert is_repetitive(LOOPING_TEXTS[name])


@pytest.mark.parametrize("name", LEGITIMATE_TEXTS)
def test_texts_that_are_not_repetitive(name):
    assert not is_repetitive(LEGITIMATE_TEXTS[name])


@pytest.mark.slow
def test_long_text_is_fast():
    import time

    text = "ab" * 500_000 + "x" * 39
    started = time.perf_counter()
    for _ in range(100):
        is_repetitive(text)
    assert time.perf_counter() - started < 1


async def test_loop_is_reminded_then_stopped(harness):
    model = Model(script(Reply("", ("probe", {"subject": "x"}))))
    await harness.open(model, [FakeTool("probe")])
    ended = await harness.turn("go")
    assert (ended.reason, ended.limit) == ("limit", "a loop: the model repeated calls of probe without new results")
    assert len(model.requests) == 3
    (reminder,) = [r for r in harness.events_of(Reminded) if "same tool calls" in r.text]
    assert model.requests[2].history[-1].text == reminder.text


async def test_reminder_that_helps_lets_the_turn_continue(harness):
    same, other = Reply("", ("probe", {"subject": "x"})), Reply("", ("probe", {"subject": "y"}))
    model = Model(script(same, same, other, same, other, Reply("done")))
    await harness.open(model, [FakeTool("probe")])
    assert (await harness.turn("go")).reason == "done"


async def test_endless_text_is_cut_off_reminded_and_stopped(harness):
    class Endless(Model):
        async def stream(self, request):
            from ostler.models.model_types import TextChunk

            self.requests.append(request)
            while True:
                yield TextChunk("Let me check that again. ")

    model = Endless(script(Reply()))
    await harness.open(model)
    ended = await harness.turn("go")
    assert ended.limit == "a loop: the model repeated the same text"
    assert len(model.requests) == 2
    assert all(len(event.message.text) < 5000 for event in harness.events_of(MessageDone))
