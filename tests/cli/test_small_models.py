"""Small models: files in the first request, edits in the text of the answer, one correction."""

import json

import pytest

from ostler.testing.model_server import text

pytestmark = pytest.mark.req("MD-10")

STATS = "def total(values):\n    return sum(values)\n\n\ndef mean(values):\n    return total(values) / 2\n"
FIXED = STATS.replace("/ 2", "/ len(values)")
ANSWER = "It divides by 2.\n\nstats.py\n```python\ndef mean(values):\n    return total(values) / len(values)\n```\n"
PROMPT = "mean in stats.py is wrong. Fix it."


@pytest.fixture
def stats(ostler):
    (ostler.workspace / "stats.py").write_text(STATS)
    (ostler.workspace / "other.py").write_text("def unrelated(a, b):\n    return a\n")
    return ostler.workspace / "stats.py"


@pytest.fixture
def run(ostler, models):
    """Run a prompt with a small model that gives these replies; return the result and the requests."""

    def run(prompt, *replies, flags=("--write",), model="tiny-1.5b"):
        with models.playing(*map(text, replies), models=(model,)) as server:
            done = ostler("run", "--base-url", server.base_url, "--model", model, *flags, prompt)
            return done, [request.json for request in server.requests if request.path.endswith("/completions")]

    return run


def last_message(request):
    return request["messages"][-1]["content"]


def test_question_is_answered_from_the_files_in_one_request(run, stats):
    done, (request,) = run("what does mean in stats.py do?", "It returns the mean.", flags=())
    assert "It returns the mean." in done.stdout
    assert "tools" not in request
    assert f"stats.py\n```\n{STATS}```" in last_message(request)
    assert "other.py: def unrelated(a, b)" in last_message(request)
    assert last_message(request).endswith("what does mean in stats.py do?")


def test_first_request_is_short_and_has_no_example_files(run, stats):
    _, (request,) = run(PROMPT, ANSWER)
    assert len(json.dumps(request["messages"])) < 2400
    assert ".py" not in request["messages"][0]["content"]


def test_edit_in_the_text_is_applied_and_can_be_undone(run, stats, ostler):
    done, (request,) = run(PROMPT, ANSWER)
    assert (done.code, stats.read_text()) == (0, FIXED)
    assert "Say in one sentence what is wrong." in last_message(request)
    assert ostler("undo").code == 0
    assert stats.read_text() == STATS


def test_new_file_is_written(run, stats):
    done, _ = run("Write fizz.py with a function fizz().", "```python\ndef fizz():\n    return 1\n```")
    assert (done.code, (stats.parent / "fizz.py").read_text()) == (0, "def fizz():\n    return 1\n")


def test_without_write_no_edit_is_offered_or_applied(run, stats):
    done, (request,) = run(PROMPT, ANSWER, flags=())
    assert stats.read_text() == STATS
    assert "code block" not in request["messages"][0]["content"] + last_message(request)
    assert done.code == 0


def test_bad_edit_is_corrected_once_with_the_error_shown(run, stats):
    bad = ANSWER.replace("len(values)\n", "len(values\n")
    done, (_, second) = run(PROMPT, bad, ANSWER)
    assert (done.code, stats.read_text()) == (0, FIXED)
    assert "the new content of stats.py is not valid" in last_message(second)


def test_second_bad_edit_ends_the_turn_with_a_reason(run, stats):
    bad = ANSWER.replace("len(values)\n", "len(values\n")
    done, requests = run(PROMPT, bad, bad)
    assert (done.code, len(requests), stats.read_text()) == (1, 2, STATS)
    assert "the model's edit could not be used: the new content of stats.py is not valid" in done.stderr + done.stdout


def test_explanation_without_an_edit_is_asked_for_the_file(run, stats):
    done, (_, second) = run(PROMPT, "The divisor is wrong.", ANSWER)
    assert (done.code, stats.read_text()) == (0, FIXED)
    assert "Write the complete new content of stats.py in a code block." in last_message(second)


def test_rename_that_forgets_a_file_is_corrected(run, stats):
    (stats.parent / "use.py").write_text("from stats import mean\n")
    first = "stats.py\n```python\ndef average(values):\n    return total(values) / 2\n```\n"
    second = "use.py\n```python\nfrom stats import average\n```\n"
    done, (request, correction) = run("Rename mean to average in all files.", first, second)
    assert done.code == 0
    assert "Files that contain mean:" in last_message(request)
    assert "use.py still contains mean" in last_message(correction)
    assert (stats.parent / "use.py").read_text() == "from stats import average\n"
    assert "def mean" not in stats.read_text()


def test_long_file_is_edited_with_search_and_replace(run, stats):
    filler = "".join(f"# line {number} of a long file\n" for number in range(300))
    stats.write_text(STATS + filler)
    block = (
        "<<<<<<< SEARCH\n    return total(values) / 2\n=======\n    return total(values) / len(values)\n>>>>>>> REPLACE"
    )
    done, (request,) = run(PROMPT, f"stats.py\n```\n{block}\n```\n")
    assert (done.code, stats.read_text()) == (0, FIXED + filler)
    assert "<<<<<<< SEARCH" in last_message(request)


def test_failing_check_is_shown_before_and_after_the_edit(run, stats):
    test = "import unittest\nfrom stats import mean\n\n\nclass T(unittest.TestCase):\n    def test_mean(self):\n"
    (stats.parent / "test_stats.py").write_text(f"{test}        self.assertEqual(mean([1, 2, 3]), 2)\n")
    wrong = ANSWER.replace("len(values)\n", "40\n")
    done, (first, second) = run("The tests fail. Fix the code.", wrong, ANSWER)
    assert (done.code, stats.read_text()) == (0, FIXED)
    assert "AssertionError: 3.0 != 2" in last_message(first)
    assert "AssertionError: 0.15 != 2" in last_message(second)


def test_tests_are_not_changed_to_make_them_pass(run, stats):
    test = stats.parent / "test_stats.py"
    test.write_text("import unittest\nfrom stats import mean\n")
    run("test_mean in test_stats.py fails. Fix stats.py.", f"test_stats.py\n```python\nx = 1\n```\n{ANSWER}")
    assert (test.read_text(), stats.read_text()) == ("import unittest\nfrom stats import mean\n", FIXED)


@pytest.mark.parametrize(("claim", "warned"), [("All tests pass now.", True), ("It divides by 2.", False)])
def test_claim_that_tests_pass_needs_a_command(run, stats, claim, warned):
    done, _ = run(PROMPT, f"{ANSWER}\n{claim}")
    assert ("no command showed that" in done.stderr + done.stdout) is warned


def test_call_in_the_text_still_works(run, stats):
    call = '<tool_call>\n{"name": "read", "arguments": {"path": "other.py"}}\n</tool_call>'
    done, (_, second) = run("what is in stats.py?", call, "Two functions.", flags=())
    assert "Two functions." in done.stdout
    assert "def unrelated" in last_message(second)


@pytest.mark.parametrize(
    ("model", "settings", "in_text"),
    [
        ("qwen2.5-coder:1.5b", {}, True),
        ("big-70b", {}, False),
        ("unknown", {}, False),
        ("unknown", {"context": 8192}, True),
        ("unknown", {"editing": "text"}, True),
        ("qwen2.5-coder:1.5b", {"editing": "tools"}, False),
        ("qwen2.5-coder:1.5b", {"dialect": "text"}, False),
    ],
)
def test_size_or_profile_decides_how_a_model_edits(ostler, models, model, settings, in_text):
    with models.playing(text("Hello."), models=(model,)) as server:
        profile = {"name": "local", "baseUrl": server.base_url, "model": model, **settings}
        config = {"models": {"profiles": [profile], "active": "local"}}
        (ostler.home / ".ostler").mkdir(exist_ok=True)
        (ostler.home / ".ostler" / "config.json").write_text(json.dumps(config))
        ostler("run", "hi")
        request = next(request.json for request in server.requests if request.path.endswith("/completions"))
    assert (
        "code block" not in str(request["messages"]) and "shown files" in request["messages"][0]["content"]
    ) is in_text


def test_file_that_was_read_only_in_part_is_never_overwritten(run, stats):
    long_text = STATS + "".join(f"# line {number} with some more words in it\n" for number in range(2500))
    stats.write_text(long_text)
    done, (first, second) = run(PROMPT, ANSWER, ANSWER)
    assert (done.code, stats.read_text()) == (1, long_text)
    assert "def mean(values):" in last_message(first)
    assert "does not exist" not in last_message(first)
    assert "stats.py is too long to be written at once" in last_message(second)


@pytest.mark.parametrize(("prompt", "shows"), [("hello", False), ("what is this?", True)])
def test_readme_is_shown_only_for_a_question(run, stats, prompt, shows):
    (stats.parent / "README.md").write_text("# Paperclip\n\nIt staples.\n")
    _, (request,) = run(prompt, "Hello.", flags=())
    assert ("It staples." in last_message(request)) is shows


def test_second_turn_shows_only_what_changed(ostler, models, stats):
    with models.playing(text(ANSWER), text("It divides."), models=("tiny-1.5b",)) as server:
        flags = ["--base-url", server.base_url, "--model", "tiny-1.5b"]
        ostler("run", "--write", *flags, PROMPT)
        ostler("run", "-c", *flags, "what does mean in stats.py do?")
        first, second = (r.json["messages"] for r in server.requests if r.path.endswith("/completions"))
    assert second[: len(first)] == first
    assert FIXED.rstrip() in second[-1]["content"]
    assert second[-1]["content"].endswith("what does mean in stats.py do?")


@pytest.mark.req("EN-7")
@pytest.mark.parametrize(("rules", "sent"), [("Use four spaces.", True), ("Use four spaces. " * 200, False)])
def test_only_short_rules_are_sent(run, stats, rules, sent):
    (stats.parent / "AGENTS.md").write_text(rules)
    _, (request,) = run("what does mean in stats.py do?", "It divides.", flags=())
    assert ("Use four spaces." in request["messages"][0]["content"]) is sent


def test_request_for_a_text_is_answered_without_a_correction(run, stats):
    done, (_,) = run("Write me a short poem about winter.", "Snow falls.")
    assert (done.code, "Snow falls." in done.stdout) == (0, True)


def test_answer_without_an_edit_of_an_unnamed_file_is_only_a_warning(run, stats):
    done, requests = run("Make unrelated return b.", "It is fine.", "It is fine.")
    assert (done.code, len(requests)) == (0, 2)
    assert "the answer changes no file" in done.stdout + done.stderr
