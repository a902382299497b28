"""Additional directories can be read unless a rule of the user denies it."""

import json

import pytest

from ostler.access.session_policy import make_policy
from ostler.core.permission import Need, Permission
from ostler.policy.verdict import evaluate_permission
from ostler.settings.load import load
from ostler.settings.run_options import RunOptions


def action(policy, path):
    return evaluate_permission(Permission("read", (Need("external_directory", path),)), policy).action


@pytest.mark.req("PM-2", "AC-6")
@pytest.mark.parametrize(("config", "expected"), [({}, "allow"), ({"external_directory": "deny"}, "deny")])
def test_additional_directories(tmp_path, config, expected):
    (tmp_path / ".ostler").mkdir()
    (tmp_path / ".ostler" / "config.json").write_text(json.dumps({"permission": config}))
    settings = load(tmp_path / "work", {"HOME": str(tmp_path)})
    policy = make_policy(settings, RunOptions("."), ["/beside"], interactive=True)
    assert [action(policy, path) for path in ("/beside", "/beside/deep/a.txt")] == [expected] * 2
    assert [action(policy, path) for path in ("/besides/a.txt", "/elsewhere")] == ["deny"] * 2
