"""Rules files of subfolders in `ostler run`: sent once, when a tool works there."""

import json

import pytest

from ostler.testing.model_server import calls, text


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


def write_files(ostler, files):
    for name, content in files.items():
        (ostler.workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (ostler.workspace / name).write_text(content)


def sent(server, number):
    return server.requests[number].json["messages"]


@pytest.mark.req("EN-7", "MD-9")
@pytest.mark.parametrize(
    "call",
    [
        ("read", {"path": "web/ui/a.txt"}),
        ("Read", {"file_path": "web/ui/a.txt"}),
        ("write", {"path": "web/ui/new.txt", "content": "x"}),
        ("edit", {"path": "web/ui/a.txt", "old": "alpha", "new": "beta"}),
        ("patch", {"patch": "*** Begin Patch\n*** Add File: web/ui/b.txt\n+x\n*** End Patch"}),
        ("list", {"path": "web/ui"}),
        ("grep", {"pattern": "alpha", "path": "web/ui"}),
    ],
)
def test_folder_rules_are_sent_when_a_tool_works_there(ostler, models, call):
    write_files(ostler, {"AGENTS.md": "root rule", "web/AGENTS.md": "web rule", "web/ui/CLAUDE.md": "ui rule"})
    write_files(ostler, {"web/ui/a.txt": "alpha\n", "api/AGENTS.md": "api rule"})
    with models.playing(calls([call]), calls([call]), text("ok")) as server:
        ostler("run", "--write", *at(server), "go")
        first, second, third = (sent(server, number) for number in range(3))
    assert "root rule" in json.dumps(first[0]) and "web rule" not in json.dumps(first)
    assert second[: len(first)] == first and third[: len(second)] == second, "nothing before is edited"
    assert json.dumps(second).index("web rule") < json.dumps(second).index("ui rule")
    for rule in ("web rule", "ui rule", "root rule"):
        assert json.dumps(third).count(rule) == 1
    assert "api rule" not in json.dumps(third)


@pytest.mark.req("EN-7")
def test_folder_rules_are_not_repeated(ostler, models):
    write_files(ostler, {"CLAUDE.md": "See @web/AGENTS.md", "web/AGENTS.md": "web rule", "web/a.txt": "alpha\n"})
    write_files(ostler, {"api/AGENTS.md": "api rule", "api/a.txt": "alpha\n"})
    looks = [calls([("read", {"path": f"{folder}/a.txt"})]) for folder in ("web", "api", "api")]
    with models.playing(looks[0], looks[1], text("ok"), looks[2], text("ok")) as server:
        ostler("run", *at(server), "go")
        ostler("run", "--continue", *at(server), "again")
        last = json.dumps(sent(server, 4))
    assert last.count("web rule") == last.count("api rule") == 1


@pytest.mark.req("EN-7", "FS-2")
@pytest.mark.parametrize("path", ["../outside/a.txt", "/etc/hostname", "link/a.txt", "gone/a.txt"])
def test_no_rules_from_outside_or_failed_calls(ostler, models, path):
    outside = ostler.workspace.parent / "outside"
    outside.mkdir()
    (outside / "AGENTS.md").write_text("outer rule")
    (outside / "a.txt").write_text("alpha")
    (ostler.workspace / "link").symlink_to(outside)
    write_files(ostler, {"gone/AGENTS.md": "outer rule"})
    with models.playing(calls([("read", {"path": path})]), text("ok")) as server:
        ostler("run", "--yolo", *at(server), "go")
        assert "outer rule" not in json.dumps(sent(server, 1))


@pytest.mark.req("EN-7")
def test_problems_in_files_are_reported(ostler, models):
    write_files(ostler, {".ostler/agents/odd.md": "---\nmode: sideways\n---\nWork.\n", "AGENTS.md": "ok"})
    write_files(ostler, {"CLAUDE.md": "", ".ostler/commands/ü b.md": "x"})
    with models.playing(text("ok")) as server:
        done = ostler("run", *at(server), "go")
    assert ".ostler/agents/odd.md: the mode 'sideways' is ignored" in done.stderr
    assert "not a valid command name" in done.stderr
