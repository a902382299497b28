"""Before a run starts: signals, large pipes, escapes in errors, empty flags."""

import io
import json
import signal

import pytest

from ostler.app import chat
from ostler.cli import main, run
from ostler.core.errors import UsageError


@pytest.mark.req("CL-8", "CL-9")
@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_early_signal_writes_a_final_record(monkeypatch, capsys, kind):
    monkeypatch.setattr(run, "_run", lambda args: signal.raise_signal(signal.SIGTERM))
    before = signal.getsignal(signal.SIGTERM)
    assert main.dispatch(["run", "-o", kind, "go"]) == 130
    record = json.loads(capsys.readouterr().out)
    assert (record["reason"], record["exit"]) == ("cancelled", 130)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.req("CL-8")
def test_final_record_is_written_once(monkeypatch, capsys):
    def run_and_stop(args):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # as the run leaves it
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "_run", run_and_stop)
    assert main.dispatch(["run", "-o", "json", "go"]) == 130
    assert capsys.readouterr().out == ""


@pytest.mark.req("CL-8")
def test_piped_input_is_limited(monkeypatch):
    monkeypatch.setattr(run, "MAX_STDIN_BYTES", 10)
    monkeypatch.setattr("select.select", lambda *_: ([True], [], []))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x" * 11)))
    with pytest.raises(UsageError, match="more than 10 bytes"):
        run._read_piped_input(None)


@pytest.mark.req("CL-5")
def test_errors_are_sanitised(monkeypatch, capsys):
    def fail(args):
        raise UsageError("there is no file \x1b]0;evil\x07x")

    monkeypatch.setattr(run, "_run", fail)
    assert main.dispatch(["run", "go"]) == 2
    assert capsys.readouterr().err == "ostler: there is no file x\n"


@pytest.mark.req("CL-8")
@pytest.mark.parametrize("flag", ["--resume", "--output-schema"])
def test_empty_flag_value_is_an_error(capsys, monkeypatch, flag):
    monkeypatch.setattr(run, "_run", lambda args: pytest.fail("the run started"))
    assert main.dispatch(["run", flag, "", "go"]) == 2
    assert f"{flag}: it is empty" in capsys.readouterr().err


@pytest.mark.req("CL-8", "SE-5")
@pytest.mark.parametrize(
    ("words", "resume"), [([], ""), (["-c"], "last"), (["--continue"], "last"), (["--resume", "x"], "x")]
)
def test_chat_resume_flags(monkeypatch, words, resume):
    opened = []
    monkeypatch.setattr(chat.ChatClient, "run", lambda self: opened.append(self.resume) or 0)
    assert main.dispatch(["chat", *words]) == 0
    assert opened == [resume]
