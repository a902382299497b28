"""The other commands: version, help, config, doctor, demo."""

import json
import re

import pytest

from ostler import __version__
from ostler.testing.model_server import calls, text


def test_version_and_help(ostler):
    assert ostler("--version").stdout == f"ostler {__version__}\n"
    helped = ostler("--help")
    assert (helped.code, "run " in helped.stdout, "doctor" in helped.stdout) == (0, True, True)
    assert ostler().stdout == helped.stdout
    for command in ("run", "demo", "config", "doctor"):
        assert ostler(command, "--help").code == 0


@pytest.mark.req("DX-4")
def test_config_show_origin(ostler):
    home, project = ostler.home / ".ostler", ostler.workspace / ".ostler"
    home.mkdir()
    project.mkdir()
    (home / "config.jsonc").write_text('{\n  // mine\n  "limits": {"steps": 7}, \n}\n')
    (project / "config.json").write_text('{"permission": {"bash": {"rm *": "deny"}}}')
    done = ostler("config", "show", "--origin")
    assert done.code == 0
    assert re.search(r'"steps": 7,?  // .*config\.jsonc:3', done.stdout)
    assert re.search(r"rm \*.*config\.json:1", done.stdout)


@pytest.mark.req("DX-4")
def test_config_check_reports_every_error(ostler):
    (ostler.home / ".ostler").mkdir()
    file = ostler.home / ".ostler" / "config.json"
    file.write_text('{\n  "permision": {},\n  "limits": {"steps": "many"}\n}\n')
    done = ostler("config", "check")
    assert done.code == 2
    assert "config.json:2:" in done.stdout
    assert "permission" in done.stdout
    assert "config.json:3:" in done.stdout
    file.write_text("{}")
    assert ostler("config", "check").code == 0


@pytest.mark.req("DX-4")
def test_config_schema_is_a_json_schema(ostler):
    import jsonschema

    schema = json.loads(ostler("config", "schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate({"limits": {"steps": 3}, "permission": {"bash": {"git *": "allow"}}}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"limits": {"steps": "many"}}, schema)


def test_doctor(ostler, models):
    done = ostler("doctor")
    assert done.code == 1
    assert "✗ model" in done.stdout
    assert "→ start a local server" in done.stdout
    assert "✓ python" in done.stdout
    with models.playing() as server:
        done = ostler("doctor", "--base-url", server.base_url, "--model", "scripted")
    assert done.code == 0
    assert "✓ model" in done.stdout


@pytest.mark.req("DX-2", "EN-2")
def test_demo_with_the_recording(ostler):
    done = ostler("demo", timeout=60)
    assert done.code == 0, done.stdout + done.stderr
    assert "replaying recorded model replies" in done.stdout
    assert "-    return total(prices) * percent // 100" in done.stdout
    assert "✓ the test passes" in done.stdout
    assert "Try next" in done.stdout
    assert "FAILED (failures=1)" in done.stdout


@pytest.mark.req("DX-2")
def test_demo_fails_if_the_model_does_not_fix_the_test(ostler, models):
    with models.playing(calls([("read", {"path": "basket.py"})]), text("I give up.")) as server:
        done = ostler("demo", "--base-url", server.base_url, "--model", "scripted", timeout=60)
    assert done.code == 1
    assert "the test still fails" in done.stdout


@pytest.mark.req("MD-10")
def test_endpoint_without_a_model_uses_the_servers_first(ostler, models):
    with models.playing(text("hi"), models=["alpha", "beta"]) as server:
        done = ostler("run", "--base-url", server.base_url, "hello")
    assert done.code == 0
    assert "model: alpha at" in done.stderr


@pytest.mark.req("MD-8", "MD-10")
def test_doctor_model(ostler, models):
    with models.playing(calls([("weather", {"place": "Paris"})])) as server:
        done = ostler("doctor", "model", "--base-url", server.base_url, "--model", "scripted")
    assert done.code == 0, done.stdout
    assert "✓ tools" in done.stdout
    assert "first output after" in done.stdout
    assert "✓ window" in done.stdout
    assert "native API tool calls" in done.stdout
    with models.playing(text("It is sunny, I guess.")) as server:
        done = ostler("doctor", "model", "--base-url", server.base_url, "--model", "scripted")
    assert done.code == 1
    assert "✗ tools" in done.stdout
    unreachable = ("--base-url", "http://127.0.0.1:9/v1", "--model", "m")
    done = ostler("doctor", "model", *unreachable, env={"WITHOUT_PAUSES": "1"})
    assert (done.code, "✗ answers" in done.stdout) == (1, True)
