"""The embedded model at the command line: installed, listed, removed, chosen, shown and gone with Ostler."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.models.embedded.fake_runtime import install_fake, received_requests, started, step

pytestmark = pytest.mark.req("MD-10")

EDIT = {
    "path": "basket.py",
    "old": "total(prices) * percent // 100",
    "new": "total(prices) * (100 - percent) // 100",
}
MENDS = (
    step("I run the tests.", "bash", command="python3 -m unittest -q"),
    step("I read the code.", "read", path="basket.py"),
    step("I mend it.", "edit", **EDIT),
    step("Again.", "bash", command="python3 -m unittest -q"),
    step("It passes."),
)


@pytest.fixture
def models_folder(ostler):
    return ostler.home / ".ostler" / "models"


def test_without_one_the_ways_to_one_are_told(ostler):
    assert "run `ostler model install`" in ostler("model", "list").stdout
    for arguments in (["run", "-m", "embedded", "hi"], ["run", "-m", "embedded/x", "hi"], ["model", "remove", "x"]):
        done = ostler(*arguments)
        assert (done.code, done.stderr.count("\n")) == (2, 1)
        assert "is installed; run `ostler model install`" in done.stderr
    assert "ostler model install" in ostler("run", "hi").stderr


def test_files_of_ones_own_are_taken_listed_and_forgotten(ostler, models_folder):
    install_fake(models_folder)
    mine = ostler.workspace / "mine.gguf"
    mine.write_bytes(b"GGUF")
    done = ostler("model", "install", "--file", mine)
    assert (done.code, "no substitute for a large model" in done.stdout) == (0, True)
    first, second = ostler("model", "list").stdout.splitlines()
    assert first == f"mine  0 MB  {mine}  (what `--model embedded` takes)"
    assert second.startswith("tiny  ")
    assert ostler("model", "remove", "mine").stdout == "mine is no longer installed\n"
    assert mine.exists()


def test_what_is_no_model_is_refused_before_anything_is_fetched(ostler):
    (ostler.workspace / "a.gguf").write_text("no model")
    done = ostler("model", "install", "--file", "a.gguf")
    assert (done.code, done.stderr) == (
        2,
        "ostler: a.gguf is not a GGUF file; use a model for llama.cpp, such as model-q4_k_m.gguf\n",
    )


def test_a_library_that_is_missing_is_told_with_the_way_to_it(ostler, models_folder):
    models_folder.mkdir(parents=True)
    (models_folder / "tiny.gguf").write_bytes(b"GGUF")
    done = ostler("run", "-m", "embedded", "hi")
    assert (done.code, "`ostler model install` fetches it" in done.stderr) == (2, True)


@pytest.mark.parametrize("flags", [["-m", "embedded"], ["-m", "embedded/tiny"]])
def test_a_run_says_which_model_it_took_and_that_it_is_small(ostler, models_folder, flags):
    weights = install_fake(models_folder, step("Hello there."))
    done = ostler("run", *flags, "say hello")
    assert (done.code, done.stdout.split("\n  ")[-1]) == (0, "Hello there.\n")
    assert "no substitute for a large model" in done.stderr
    (request,) = received_requests(weights)
    assert len(request["messages"][0]["content"]) < 1500
    assert request["messages"][-1] == {"role": "user", "content": "say hello"}


def test_with_nothing_configured_it_is_taken(ostler, models_folder):
    install_fake(models_folder, step("Hello there."))
    done = ostler("run", "say hello")
    assert "Hello there." in done.stdout
    assert "model: tiny in a process of ours" in done.stderr


def test_settings_can_name_it(ostler, models_folder):
    install_fake(models_folder, step("Hello there."))
    (ostler.home / ".ostler" / "config.json").write_text('{"model": "embedded"}')
    assert "Hello there." in ostler("run", "say hello").stdout


def test_the_demo_takes_it_and_is_judged_by_the_test(ostler, models_folder):
    weights = install_fake(models_folder, *MENDS)
    done = ostler("demo", "-m", "embedded")
    assert (done.code, "✓ the test passes" in done.stdout) == (0, True)
    assert "no substitute for a large model" in done.stdout
    assert len(received_requests(weights)) == len(MENDS)


def test_the_demo_without_a_model_plays_its_recording_and_offers_one(ostler):
    done = ostler("demo")
    assert done.code == 0
    assert "ostler model install" in done.stdout
    assert "ostler model install" not in ostler("demo", "--recording").stdout


def test_the_doctor_can_ask_it(ostler, models_folder):
    install_fake(models_folder, step("I ask.", "weather", place="Paris"))
    done = ostler("doctor", "model", "-m", "embedded")
    assert (done.code, "it calls them" in done.stdout) == (0, True)


def test_it_is_gone_with_ostler_even_when_that_is_killed(ostler, models_folder):
    weights = install_fake(models_folder, "hang")
    command = [sys.executable, "-P", "-m", "ostler", "run", "-m", "embedded", "hi"]
    with subprocess.Popen(command, cwd=ostler.workspace, env=ostler.environment(), stdin=subprocess.DEVNULL) as process:
        asked_for = weights.with_name(weights.name + ".asked")
        assert eventually(asked_for.exists)
        pid = started(weights)["pid"]
        os.kill(pid, 0)
        process.send_signal(signal.SIGKILL)
    assert eventually(lambda: not alive(pid))


def test_names_in_settings_win_over_ours(ostler, models, models_folder):
    from ostler.testing.model_server import text

    install_fake(models_folder, step("from the embedded one"))
    with models.playing(text("from the profile")) as server:
        profile = {"name": "embedded", "baseUrl": server.base_url, "model": "scripted"}
        (ostler.home / ".ostler" / "config.json").write_text(json.dumps({"models": {"profiles": [profile]}}))
        assert "from the profile" in ostler("run", "-m", "embedded", "hi").stdout


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat", "rb") as file:
        return b") Z" not in file.read()


def eventually(holds, seconds=45):
    """Another process decides when; there is no event to wait for."""
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    return holds()
