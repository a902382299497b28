"""`ostler run '/name args'`, `@agent:name` and `@file`."""

import json

import pytest

from ostler.testing.model_server import calls, text


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


def write(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def write_own(ostler, name, content):
    write(ostler.home / ".ostler", name, content)


def messages_of(server, number=0):
    return json.dumps(server.requests[number].json["messages"], ensure_ascii=False)


def last(server, number=0):
    content = server.requests[number].json["messages"][-1]["content"]
    return content if isinstance(content, str) else json.dumps(content)


@pytest.mark.req("EN-11")
@pytest.mark.parametrize(
    ("path", "line", "expanded"),
    [
        (".ostler/commands/greet.md", "/greet Ann Lee", "Greet Ann Lee: Ann, Lee."),
        (".claude/commands/greet.md", "/greet Ann Lee", "Greet Ann Lee: Ann, Lee."),
        (".opencode/command/greet.md", "/greet Ann Lee", "Greet Ann Lee: Ann, Lee."),
        (".eidolon/openspec/commands/apply.md", "/openspec:apply Ann Lee", "Greet Ann Lee: Ann, Lee."),
    ],
)
def test_command_expands_to_a_prompt(ostler, models, path, line, expanded):
    write(ostler.workspace, path, "---\ndescription: greets\n---\nGreet $ARGUMENTS: $1, $2.\n")
    with models.playing(text("ok")) as server:
        assert ostler("run", *at(server), line).code == 0
        assert expanded in last(server)


@pytest.mark.req("EN-11")
def test_command_includes_outputs_and_files(ostler, models):
    (ostler.workspace / "notes.txt").write_text("remember the milk\n")
    (ostler.workspace / "mine.txt").write_text("typed by the user\n")
    write_own(ostler, "commands/look.md", "There is !`echo seen by shell` and @notes.txt for $1")
    with models.playing(text("ok")) as server:
        done = ostler("run", *at(server), "/look @mine.txt")
        sent = messages_of(server)
    assert done.code == 0, done.stderr
    for part in ("There is seen by shell and", "remember the milk", "typed by the user"):
        assert part in sent
    assert "attached notes.txt (1 line)" in done.stderr


@pytest.mark.req("EN-11", "PM-8")
def test_untrusted_project_command_runs_nothing(ostler, models):
    write(ostler.workspace, ".ostler/commands/run.md", f"See !`touch {ostler.home}/ran; echo out`")
    with models.playing() as server:
        done = ostler("run", *at(server), "/run")
    assert done.code == 2 and "not trusted" in done.stderr and "touch" in done.stderr
    assert not (ostler.home / "ran").exists()


@pytest.mark.req("EN-11", "SH-4")
def test_denied_shell_command_ends_the_command(ostler, models):
    (ostler.workspace / "a.txt").write_text("a")
    write_own(ostler, "commands/clean.md", "Gone: !`rm -rf a.txt`")
    with models.playing() as server:
        done = ostler("run", "--write", *at(server), "/clean")
    assert done.code == 2 and "did not run" in done.stderr
    assert (ostler.workspace / "a.txt").exists()


@pytest.mark.req("EN-11", "PM-8")
def test_project_command_attaches_no_outside_files_or_secrets(ostler, models):
    (ostler.home / "secret.txt").write_text("outer secret")
    (ostler.workspace / ".env").write_text("KEY=inner secret")
    write(ostler.workspace, ".ostler/commands/steal.md", f"Look: @{ostler.home}/secret.txt @../home/secret.txt @.env")
    with models.playing(text("ok")) as server:
        done = ostler("run", "--yolo", *at(server), "/steal")
        sent = messages_of(server)
    assert "outer secret" not in sent and "inner secret" not in sent
    assert "was not attached" in done.stderr


@pytest.mark.req("EN-11", "EN-3")
def test_agent_of_a_command_is_used_for_one_turn(ostler, models):
    write_own(ostler, "agents/poet.md", "---\ndescription: rhymes\ntemperature: 0.3\n---\nAnswer in verse.\n")
    write_own(ostler, "commands/rhyme.md", "---\nagent: poet\nmodel: other\n---\nRhyme on $ARGUMENTS")
    with models.playing(text("a"), text("b")) as server:
        ostler("run", *at(server), "/rhyme moon")
        ostler("run", "--continue", *at(server), "and now in prose")
        first, second = (request.json for request in server.requests)
    assert (first["temperature"], first["model"]) == (0.3, "other")
    assert "temperature" not in second and second["model"] == "scripted"
    assert "no longer apply" in json.dumps(second["messages"])


@pytest.mark.req("EN-11", "EN-4")
def test_subtask_runs_in_a_child(ostler, models):
    (ostler.workspace / "a.txt").write_text("alpha\n")
    write_own(ostler, "commands/study.md", "---\nagent: explore\nsubtask: true\n---\nStudy @a.txt about $ARGUMENTS")
    with models.playing(text("the child saw alpha"), text("alpha it is")) as server:
        done = ostler("run", "-o", "json", *at(server), "/study letters")
        child, parent = messages_of(server, 0), messages_of(server, 1)
    assert "Study @a.txt about letters" in child and "alpha" in child
    assert (
        "/study letters" in parent
        and "the child saw alpha" in parent
        and "Study @a.txt about" not in parent.split("tool_calls")[0]
    )
    assert json.loads(done.stdout)["answer"] == "alpha it is"


@pytest.mark.req("EN-11")
def test_unknown_command_is_an_error_and_a_path_is_text(ostler, models):
    write_own(ostler, "commands/review.md", "Review it.")
    with models.playing() as server:
        done = ostler("run", *at(server), "/reviw")
    assert done.code == 2 and "did you mean /review?" in done.stderr
    with models.playing(text("ok")) as server:
        assert ostler("run", *at(server), "/etc/hosts is broken").code == 0
        assert "/etc/hosts is broken" in last(server)


@pytest.mark.req("EN-3")
def test_mentioned_agent_stays_selected(ostler, models):
    write_own(ostler, "agents/poet.md", "---\ndescription: rhymes\n---\nAnswer in verse.\n")
    write(ostler.workspace, ".ostler/agents/clerk.md", "---\ndescription: lists\n---\nAnswer in lists.\n")
    with models.playing(text("a"), text("b"), text("c"), text("d")) as server:
        for line in ("@agent:poet hello", "and again", "@agent:clerk hello @agent:nothing.", "@agent:clerk and again"):
            flags = ["--continue"] if server.requests else []
            done = ostler("run", *flags, *at(server), line)
            if "nothing" in line:
                assert done.code == 2 and "unknown agent 'nothing'" in done.stderr and "clerk" in done.stderr
        verse = [messages_of(server, number).count("Answer in verse.") for number in range(3)]
        lists = [messages_of(server, number).count("Answer in lists.") for number in range(3)]
        server.add_replies()
        ostler("run", "--continue", *at(server), "once more")
        assert messages_of(server, 3).count("Answer in lists.") == 1
    assert verse == [1, 1, 1]
    assert lists == [0, 0, 1]


@pytest.mark.req("EN-3", "PM-2")
def test_mentioned_plan_agent_cannot_write(ostler, models):
    with models.playing(calls([("write", {"path": "x", "content": "x"})]), text("ok")) as server:
        ostler("run", "--write", *at(server), "@agent:plan go")
    assert not (ostler.workspace / "x").exists()


@pytest.mark.req("CL-4")
def test_mentioned_outside_file_needs_yolo(ostler, models):
    (ostler.workspace / "in.txt").write_text("inside\n")
    (ostler.home / "out.txt").write_text("outside\n")
    line = f"look at @in.txt, @{ostler.home}/out.txt and @nobody"
    for flags, attached in (([], False), (["--yolo"], True)):
        with models.playing(text("ok")) as server:
            done = ostler("run", *flags, *at(server), line)
            assert "inside" in messages_of(server) and ("outside\\n" in messages_of(server)) is attached
    assert "@nobody was not attached" in done.stderr


@pytest.mark.req("EN-11", "PM-8")
def test_trusted_project_command_runs(ostler, models):
    write(ostler.workspace, ".ostler/commands/run.md", "See !`echo out`")
    assert ostler("trust", "--yes").code == 0
    with models.playing(text("ok")) as server:
        assert ostler("run", *at(server), "/run").code == 0
        assert "See out" in last(server)
    write(ostler.workspace, ".ostler/commands/run.md", "See !`echo other`")
    with models.playing() as server:
        assert ostler("run", *at(server), "/run").code == 2


@pytest.mark.req("PM-8")
def test_run_refuses_sensitive_files_and_stronger_agents(ostler, models):
    (ostler.workspace / ".env").write_text("KEY=1\n")
    with models.playing(text("ok")) as server:
        assert "may contain secrets" in ostler("run", *at(server), "see @.env").stderr
        assert "may do more than plan" in ostler("run", "--agent", "plan", *at(server), "@agent:build go").stderr
        assert not server.requests
        ostler("run", "--agent", "plan", *at(server), stdin="@agent:build @.env go")
        assert "KEY=1" not in server.requests[0].body.decode()
