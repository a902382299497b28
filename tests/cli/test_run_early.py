"""What becomes of a run before it began: signals, endless pipes, and hostile words in what it says."""

import io
import json
import signal

import pytest

from ostler.app import chat
from ostler.cli import main, run
from ostler.core.errors import UsageError


@pytest.mark.req("CL-8", "CL-9")
@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_a_signal_before_the_run_began_leaves_a_final_record(monkeypatch, capsys, kind):
    monkeypatch.setattr(run, "_run", lambda given: signal.raise_signal(signal.SIGTERM))
    before = signal.getsignal(signal.SIGTERM)
    assert main.dispatch(["run", "-o", kind, "go"]) == 130
    record = json.loads(capsys.readouterr().out)
    assert (record["reason"], record["exit"]) == ("cancelled", 130)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.req("CL-8")
def test_after_the_run_has_told_its_end_it_is_not_told_again(monkeypatch, capsys):
    def played(given):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # as whoever listened to signals leaves it
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "_run", played)
    assert main.dispatch(["run", "-o", "json", "go"]) == 130
    assert capsys.readouterr().out == ""


@pytest.mark.req("CL-8")
def test_more_than_any_model_reads_is_not_taken_from_a_pipe(monkeypatch):
    monkeypatch.setattr(run, "MAX_STDIN_BYTES", 10)
    monkeypatch.setattr("select.select", lambda *_: ([True], [], []))
    monkeypatch.setattr(run.sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x" * 11)))
    with pytest.raises(UsageError, match="more than 10 bytes"):
        run._read_stdin(None)


@pytest.mark.req("CL-5")
def test_no_escape_in_an_error_reaches_the_terminal(monkeypatch, capsys):
    def failing(given):
        raise UsageError("there is no file \x1b]0;evil\x07x")

    monkeypatch.setattr(run, "_run", failing)
    assert main.dispatch(["run", "go"]) == 2
    assert capsys.readouterr().err == "ostler: there is no file x\n"


@pytest.mark.req("CL-8")
@pytest.mark.parametrize("flag", ["--resume", "--output-schema"])
def test_a_variable_that_is_not_set_is_not_taken_for_a_flag_left_out(capsys, monkeypatch, flag):
    monkeypatch.setattr(run, "_run", lambda given: pytest.fail("it began"))
    assert main.dispatch(["run", flag, "", "go"]) == 2
    assert f"{flag}: it is empty" in capsys.readouterr().err


@pytest.mark.req("CL-8", "SE-5")
@pytest.mark.parametrize(
    ("words", "resume"), [([], ""), (["-c"], "last"), (["--continue"], "last"), (["--resume", "x"], "x")]
)
def test_a_prompt_goes_on_with_the_last_session_as_a_run_does(monkeypatch, words, resume):
    opened = []
    monkeypatch.setattr(chat.ChatClient, "run", lambda self: opened.append(self.resume) or 0)
    assert main.dispatch(["chat", *words]) == 0
    assert opened == [resume]
