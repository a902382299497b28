"""A session's policy: folders besides the workspace may be read, unless a person's own rule says otherwise."""

import json

import pytest

from ostler.app.options import RunOptions
from ostler.app.policies import make_policy
from ostler.policy.verdict import verdict
from ostler.settings.load import load
from ostler.vocabulary.permission import Need, Permission


def action(policy, path):
    return verdict(Permission("read", (Need("external_directory", path),)), policy).action


@pytest.mark.req("PM-2", "AC-6")
@pytest.mark.parametrize(("config", "expected"), [({}, "allow"), ({"external_directory": "deny"}, "deny")])
def test_folders_besides_the_workspace(tmp_path, config, expected):
    (tmp_path / ".ostler").mkdir()
    (tmp_path / ".ostler" / "config.json").write_text(json.dumps({"permission": config}))
    settings = load(tmp_path / "work", {"HOME": str(tmp_path)})
    policy = make_policy(settings, RunOptions("."), ["/beside"], attended=True)
    assert [action(policy, path) for path in ("/beside", "/beside/deep/a.txt")] == [expected] * 2
    assert [action(policy, path) for path in ("/besides/a.txt", "/elsewhere")] == ["deny"] * 2
