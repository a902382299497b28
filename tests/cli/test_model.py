"""The embedded model on the command line: install, list, remove, select, stop."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.models.embedded.fake_runtime import install_fake, received_requests, started

pytestmark = pytest.mark.req("MD-10")

FIXED = """\
A discount of ten percent must take ten percent off.

basket.py
```python
def with_discount(prices, percent):
    return total(prices) * (100 - percent) // 100
```
"""


@pytest.fixture
def models_folder(ostler):
    return ostler.home / ".ostler" / "models"


def test_missing_model_suggests_install(ostler):
    assert "run `ostler model install`" in ostler("model", "list").stdout
    for arguments in (["run", "-m", "embedded", "hi"], ["run", "-m", "embedded/x", "hi"], ["model", "remove", "x"]):
        done = ostler(*arguments)
        assert (done.code, done.stderr.count("\n")) == (2, 1)
        assert "is installed; run `ostler model install`" in done.stderr
    assert "ostler demo" in ostler("run", "hi").stderr


def test_install_list_and_remove_own_file(ostler, models_folder):
    install_fake(models_folder)
    mine = ostler.workspace / "mine.gguf"
    mine.write_bytes(b"GGUF")
    done = ostler("model", "install", "--file", mine)
    assert (done.code, "not replace a large model" in done.stdout) == (0, True)
    first, second = ostler("model", "list").stdout.splitlines()
    assert first == f"mine  0 MB  {mine}  (used by `--model embedded`)"
    assert second.startswith("tiny  ")
    assert ostler("model", "remove", "mine").stdout == "removed mine\n"
    assert mine.exists()


def test_invalid_file_is_rejected_before_the_download(ostler):
    (ostler.workspace / "a.gguf").write_text("no model")
    done = ostler("model", "install", "--file", "a.gguf")
    assert (done.code, done.stderr) == (
        2,
        "ostler: a.gguf is not a GGUF file; use a model for llama.cpp, such as model-q4_k_m.gguf\n",
    )


def test_missing_runtime_library_suggests_install(ostler, models_folder):
    models_folder.mkdir(parents=True)
    (models_folder / "tiny.gguf").write_bytes(b"GGUF")
    done = ostler("run", "-m", "embedded", "hi")
    assert (done.code, "install it with `ostler model install`" in done.stderr) == (2, True)


@pytest.mark.parametrize("flags", [["-m", "embedded"], ["-m", "embedded/tiny"]])
def test_run_names_the_model_and_its_limits(ostler, models_folder, flags):
    weights = install_fake(models_folder, "Hello there.")
    done = ostler("run", *flags, "say hello")
    assert done.code == 0
    assert done.stdout.endswith("● Hello there.\n  ↑ ANSWER\n")
    assert "not replace a large model" in done.stderr
    (request,) = received_requests(weights)
    assert len(request["messages"][0]["content"]) < 1500
    assert request["messages"][-1]["content"].endswith("say hello")


def test_embedded_model_is_the_fallback(ostler, models_folder):
    install_fake(models_folder, "Hello there.")
    done = ostler("run", "say hello")
    assert "Hello there." in done.stdout
    assert "model: tiny, embedded" in done.stderr


def test_settings_can_select_it(ostler, models_folder):
    install_fake(models_folder, "Hello there.")
    (ostler.home / ".ostler" / "config.json").write_text('{"model": "embedded"}')
    assert "Hello there." in ostler("run", "say hello").stdout


def test_demo_with_the_embedded_model(ostler, models_folder):
    weights = install_fake(models_folder, FIXED)
    done = ostler("demo", "-m", "embedded")
    assert (done.code, "✓ the test passes" in done.stdout) == (0, True), done.stdout
    assert "not replace a large model" in done.stdout
    assert len(received_requests(weights)) == 1


def test_demo_without_a_model_suggests_install(ostler):
    done = ostler("demo")
    assert done.code == 0
    assert "ostler model install" in done.stdout
    assert "ostler model install" not in ostler("demo", "--recording").stdout


def test_doctor_with_the_embedded_model(ostler, models_folder):
    install_fake(models_folder, "One two three.")
    done = ostler("doctor", "model", "-m", "embedded")
    assert (done.code, "edits in the text of its answers" in done.stdout) == (0, True), done.stdout


def test_server_ends_when_ostler_is_killed(ostler, models_folder):
    weights = install_fake(models_folder, "hang")
    command = [sys.executable, "-P", "-m", "ostler", "run", "-m", "embedded", "hi"]
    with subprocess.Popen(command, cwd=ostler.workspace, env=ostler.environment(), stdin=subprocess.DEVNULL) as process:
        request_log = weights.with_name(weights.name + ".asked")
        assert wait_until(request_log.exists)
        pid = started(weights)["pid"]
        os.kill(pid, 0)
        process.send_signal(signal.SIGKILL)
    assert wait_until(lambda: not is_alive(pid))


def test_profile_named_embedded_takes_precedence(ostler, models, models_folder):
    from ostler.testing.model_server import text

    install_fake(models_folder, "from the embedded one")
    with models.playing(text("from the profile")) as server:
        profile = {"name": "embedded", "baseUrl": server.base_url, "model": "scripted"}
        (ostler.home / ".ostler" / "config.json").write_text(json.dumps({"models": {"profiles": [profile]}}))
        assert "from the profile" in ostler("run", "-m", "embedded", "hi").stdout


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat", "rb") as file:
        return b") Z" not in file.read()


def wait_until(condition, seconds=45):
    """Poll until the condition condition: another process causes it, without an event to wait for."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def test_serve_keeps_the_model_loaded_without_a_key(ostler, models_folder):
    weights = install_fake(models_folder, "from the server")
    command = [sys.executable, "-P", "-m", "ostler", "model", "serve", "tiny", "--port", "0", "--threads", "2"]
    environment = ostler.environment()
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        assert line.startswith("tiny is served at http://127.0.0.1:")
        url = next(word for word in line.split() if word.startswith("http"))
        assert (started(weights)["threads"], started(weights)["keys"]) == (2, [])
        assert "from the server" in ostler("run", "--base-url", url, "--model", "tiny", "hi").stdout
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert wait_until(lambda: not is_alive(started(weights)["pid"]))


@pytest.mark.parametrize("flags", [["--port", "x"], ["--port", "70000"], ["--threads", "0"]])
def test_serve_rejects_bad_numbers(ostler, flags):
    done = ostler("model", "serve", *flags)
    assert (done.code, "must be a number from" in done.stderr) == (2, True)
