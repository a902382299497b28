"""Project settings need trust, and need it again when they change."""

import json

import pytest

from ostler.testing.model_server import calls, text

pytestmark = pytest.mark.req("PM-8")
CLAUDE_HOOKS = {
    "hooks": {"PreToolUse": [{"matcher": "Write", "hooks": [{"type": "command", "command": "sh ./hooks/check.sh"}]}]}
}


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


@pytest.fixture
def project(ostler):
    folder = ostler.workspace / ".ostler"
    folder.mkdir()

    def write(config):
        (folder / "config.json").write_text(json.dumps(config))

    return write


def test_untrusted_project_cannot_extend_permissions(ostler, models, project):
    project({"permission": {"write": "allow", "bash": "allow"}, "security": {"profile": "god_mode"}})
    with models.playing(calls([("write", {"path": "x", "content": ""})]), text("ok")) as server:
        done = ostler("run", *at(server), "go")
    assert done.code == 4
    assert not (ostler.workspace / "x").exists()
    assert "are ignored until you trust them" in done.stderr


def test_untrusted_project_cannot_set_the_endpoint(ostler, models, project):
    with models.playing(text("mine")) as mine, models.playing() as theirs:
        project({"models": {"active": "x", "profiles": [{"name": "x", "model": "m", "baseUrl": theirs.base_url}]}})
        done = ostler("run", "-o", "simple", *at(mine), "hi", env={"OSTLER_API_KEY": "secret"})
    assert done.stdout == "mine\n"
    assert theirs.requests == []


def test_restrictions_apply_without_trust(ostler, models, project):
    project({"permission": {"read": "deny"}})
    (ostler.workspace / "a").write_text("x")
    with models.playing(calls([("read", {"path": "a"})]), text("ok")) as server:
        assert ostler("run", *at(server), "go").code == 4


def test_changed_settings_need_new_trust(ostler, models, project):
    project({"permission": {"write": "allow"}})
    shown = ostler("trust")
    assert (shown.code, "Not trusted." in shown.stdout) == (4, True)
    assert 'permission.write = "allow"' in shown.stdout
    assert ostler("trust", "--yes").code == 0
    with models.playing(calls([("write", {"path": "x", "content": ""})]), text("ok")) as server:
        assert ostler("run", *at(server), "go").code == 0
    assert (ostler.workspace / "x").exists()
    project({"permission": {"write": "allow", "bash": "allow"}})
    with models.playing(calls([("write", {"path": "y", "content": ""})]), text("ok")) as server:
        assert ostler("run", *at(server), "go").code == 4
    changed = ostler("trust")
    assert '+ permission.bash = "allow"' in changed.stdout
    assert '    permission.write = "allow"' in changed.stdout
    assert "no longer trusted" in ostler("trust", "--revoke").stdout
    assert "was not trusted" in ostler("trust", "--revoke").stdout


def test_flag_trusts_one_run(ostler, models, project):
    project({"permission": {"write": "allow"}})
    with models.playing(calls([("write", {"path": "x", "content": ""})]), text("ok")) as server:
        assert ostler("run", "--trust-project", *at(server), "go").code == 0
    assert ostler("trust").code == 4


def test_env_file_is_never_loaded(ostler, models):
    with models.playing() as theirs:
        (ostler.workspace / ".env").write_text(f"OSTLER_BASE_URL={theirs.base_url}\nOSTLER_MODEL=m\n")
        done = ostler("run", "hi")
    assert done.code == 2
    assert theirs.requests == []


def test_trust_covers_agents_commands_and_hooks(ostler):
    files = {
        ".ostler/agents/wide.md": "---\ndescription: x\npermission:\n  bash: allow\n---\nWork.\n",
        ".claude/agents/reader.md": "---\ndescription: x\ntools: Read, Grep\n---\nOnly words and fewer tools.\n",
        ".claude/agents/build.md": "---\ntools: Bash\n---\nMore tools for one that is known.\n",
        ".ostler/commands/ship.md": "Ship it: !`git push $1`\n",
        ".ostler/commands/talk.md": "Only words.\n",
        ".claude/settings.json": json.dumps(CLAUDE_HOOKS),
        "hooks/check.sh": "exit 0\n",
    }
    for name, content in files.items():
        (ostler.workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (ostler.workspace / name).write_text(content)
    shown = ostler("trust").stdout
    lines = [line.strip() for line in shown.splitlines()[1:-1]]
    assert [line.partition(":")[0] for line in lines] == [
        "agent build (.claude/agents/build.md)",
        "agent wide (.ostler/agents/wide.md)",
        "command /ship (.ostler/commands/ship.md)",
        "hook before_tool (.claude/settings.json)",
        "program hooks/check.sh",
    ], shown
    assert "git push $1" in shown and '["bash", "*", "allow"]' in shown
    assert ostler("trust", "--yes").code == 0
    assert ostler("trust").code == 0
    for name, content, line in [
        ("hooks/check.sh", "exit 1\n", "+ program hooks/check.sh"),
        (".ostler/commands/ship.md", "Ship it: !`git push --force`\n", "+ command /ship"),
        (".ostler/agents/wide.md", "---\npermission:\n  '*': allow\n---\nWork.\n", "+ agent wide"),
    ]:
        (ostler.workspace / name).write_text(content)
        changed = ostler("trust")
        assert changed.code == 4 and line in changed.stdout, changed.stdout
        assert "- " in changed.stdout
        assert ostler("trust", "--yes").code == 0
    (ostler.workspace / ".ostler/commands/ship.md").write_text("Ship it, please: !`git push --force`\n")
    assert ostler("trust").code == 0, "text without programs needs no trust"


def test_ignored_settings_are_counted(ostler, models):
    (ostler.workspace / ".claude").mkdir()
    (ostler.workspace / ".claude/settings.json").write_text(json.dumps(CLAUDE_HOOKS))
    with models.playing(text("ok")) as server:
        assert "1 project settings are ignored until you trust them" in ostler("run", *at(server), "go").stderr


def test_folder_without_settings_can_be_trusted(ostler):
    """The check after edits then runs without asking."""
    assert "no settings that need trust" in ostler("trust").stdout
    assert "check after edits" in ostler("trust", "--yes").stdout
    assert "is trusted" in ostler("trust").stdout


def test_nothing_to_trust(ostler, project):
    project({"permission": {"bash": "deny"}})
    assert "no settings that need trust" in ostler("trust").stdout
