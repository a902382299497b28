"""What a command line needs besides its commands: `write` for redirections, and rules for the variables it sets."""

import pytest

from ostler.core.permission import Rule
from ostler.policy.presets import BASELINE, WRITE_FLAG
from ostler.policy.verdict import Policy, evaluate_permission
from ostler.tools.bash import BashParams, BashTool
from ostler.workspace.session_workspace import SessionShell, SessionWorkspace


@pytest.fixture
async def decide(tmp_path):
    (tmp_path / "main.py").write_text("x\n")
    workspace = SessionWorkspace(
        str(tmp_path), SessionShell(str(tmp_path), writable=True, sandbox="off"), read_anywhere=False
    )

    async def action(command: str, *rules: Rule) -> str:
        permission = await BashTool().permission(BashParams(command), workspace)
        return evaluate_permission(permission, Policy(rules=(*BASELINE, *rules))).action

    yield action
    await workspace.aclose()


GIT_STATUS = Rule("bash", "git status *", "allow", "user")


@pytest.mark.req("PM-1", "PM-5")
@pytest.mark.parametrize(
    "command",
    [
        "cat > evil.py <<'EOF'\nx\nEOF",
        "ls > x",
        "cat >> main.py <<< code",
        "cat main.py > Makefile",
        "ls &> x",
        "ls 2> x",
        "cat <> x",
        "{ ls; } > x",
        "(ls) >> x",
        "for i in 1 2; do cat main.py; done > x",
        "if ls; then cat main.py; fi >> main.py",
        "ls | cat > x",
        "ls $(cat main.py > x)",
        'cat main.py >> "$(cat main.py)"',
        "ls > sub/dir/x",
        "f() { ls; }; f > x",
    ],
)
async def test_a_redirection_to_a_file_asks_like_write(decide, command):
    assert await decide(command) == "ask"
    assert await decide(command, *WRITE_FLAG, Rule("bash", "*", "allow", "user")) == "allow"


@pytest.mark.req("PM-1")
@pytest.mark.parametrize(
    "command",
    [
        "ls > /dev/null",
        "ls 2>&1",
        "ls 2>/dev/null",
        "ls >&2",
        "cat main.py > /dev/stderr",
        "ls &> /dev/null",
        "cat < main.py",
        "cat <<< hi",
        "ls 2>&1 | cat",
    ],
)
async def test_devices_and_descriptors_need_no_permission_to_write(decide, command):
    assert await decide(command) == "allow"


@pytest.mark.req("PM-1", "SH-8")
@pytest.mark.parametrize("command", ['ls > "$TMPDIR/out"', "ls >> $TMPDIR/out", "cat $SOME_FILE", "cat < $SOME_FILE"])
async def test_what_only_the_sandbox_makes_harmless_asks_without_it(decide, tmp_path, monkeypatch, command):
    async def sandboxed(self):
        return True

    assert await decide(command) == "ask"
    monkeypatch.setattr(SessionWorkspace, "is_sandboxed", sandboxed)
    assert await decide(command) == "allow"


@pytest.mark.req("PM-1", "FS-3")
@pytest.mark.parametrize(
    "command",
    ["cat /proc/$PPID/environ", "cat /$NAME", "ls ../$NAME", "cat < /etc/$NAME", "for f in /etc/*; do cat $f; done"],
)
async def test_unknown_path_that_begins_outside_the_workspace_asks(decide, monkeypatch, command):
    async def sandboxed(self):
        return True

    monkeypatch.setattr(SessionWorkspace, "is_sandboxed", sandboxed)
    assert await decide(command) == "ask"


@pytest.mark.parametrize("command", ["for f in *.py; do cat $f; done", "cat $PWD/main.py", "x=main.py; cat $x"])
async def test_names_of_files_in_the_workspace_do_not_ask(decide, command):
    assert await decide(command) == "allow"


async def test_a_rule_for_write_covers_a_redirection(decide):
    assert await decide("ls > out.txt", Rule("write", "*.txt", "allow", "user")) == "allow"
    assert await decide("ls > out.py", Rule("write", "*.txt", "allow", "user")) == "ask"
    assert await decide("ls > out.txt", Rule("write", "*", "deny", "user")) == "deny"


@pytest.mark.req("PM-1")
@pytest.mark.parametrize(
    "prefix",
    [
        "GIT_DIR=evil",
        "XDG_CONFIG_HOME=.",
        "HOME=.",
        "HOME=.;",
        "PYTHONPATH=.",
        "GIT_DIR=evil LANG=C",
        "LANG=C GIT_DIR=evil",
        "ANYTHING=x",
        "LANG=$(cat main.py)/x",
        "PAGER=less",
        "A=1 B=2",
    ],
)
async def test_a_rule_for_a_command_does_not_cover_variables_set_for_it(decide, prefix):
    assert await decide("git status", GIT_STATUS) == "allow"
    assert await decide(f"{prefix} git status", GIT_STATUS) == "ask"


@pytest.mark.req("PM-1")
@pytest.mark.parametrize(
    "prefix", ["LANG=C", "LC_ALL=C.UTF-8", "NO_COLOR=1", "TERM=dumb", "COLUMNS=80", "CI=true", "PAGER=cat", "TZ=UTC"]
)
async def test_harmless_variables_are_covered_by_the_rule_for_the_command(decide, prefix):
    assert await decide(f"{prefix} git status", GIT_STATUS) == "allow"


@pytest.mark.req("PM-1")
async def test_a_deny_rule_also_covers_the_command_with_a_variable(decide):
    everything = Rule("bash", "*", "allow", "user")
    assert await decide("X=1 git push", everything, Rule("bash", "git push *", "deny", "user")) == "deny"
    assert await decide("X=1 git status", Rule("bash", "X=1 git status *", "allow", "user"), GIT_STATUS) == "allow"


@pytest.mark.req("SH-3")
@pytest.mark.parametrize("name", ["LD_LIBRARY_PATH", "LD_AUDIT", "LD_PRELOAD", "LOCPATH", "GCONV_PATH", "OPENSSL_CONF"])
async def test_variables_that_load_code_are_asked_about(decide, name):
    everything = Rule("bash", "*", "allow", "user")
    assert await decide(f"{name}=. ls", everything) == "ask"
    assert await decide(f"export {name}=.; ls", everything) == "ask"


@pytest.mark.req("PM-1")
@pytest.mark.parametrize(
    "command",
    [
        "cat $(cat main.py)",
        'cat "$(cat main.py)"',
        "x=$(cat main.py); cat $x",
        'read -r x < main.py; cat "$x"',
        "ls `cat main.py`",
        "for f in $(cat main.py); do cat $f; done",
        'cat <<< "$(< /etc/hostname)"',
        "while read -r l; do ls; done < /etc/hostname",
        "cat docs/*",
        "cat docs/tax.txt",
        "cat linked/*",
        "grep x linked/*.txt",
        "grep -R x .",
        "grep -nR x linked",
        "grep --dereference-recursive x",
        "cat ../*",
    ],
)
async def test_unknown_words_and_patterns_that_leave_the_workspace_are_asked_about(decide, tmp_path, command):
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "tax.txt").write_text("secret\n")
    (tmp_path / "docs").symlink_to(outside)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "a.txt").symlink_to(outside / "tax.txt")
    assert await decide(command) == "ask"


@pytest.mark.req("PM-1")
@pytest.mark.parametrize(
    "command",
    [
        "grep x *.py",
        "ls *.md",
        "cat *.py",
        "cat sub/*.txt",
        "grep -r x .",
        "grep -R x .",
        "cat *",
        'for f in *.py; do cat "$f"; done',
        "n=1; cat main.py | grep -c x",
    ],
)
async def test_patterns_inside_the_workspace_are_not_asked_about(decide, tmp_path, command):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt").write_text("x\n")
    (tmp_path / "inside").symlink_to("main.py")
    assert await decide(command) == "allow"


@pytest.mark.req("SH-3")
@pytest.mark.parametrize(
    "command",
    [
        "cat ~/.ssh/i*",
        "base64 ~/.ss?/id_rsa",
        "cat ~/.ssh/*",
        "cat ~/.s*/id_*",
        "cat ~/.[s]sh/id_rsa",
        "head ~/.aws/cred*",
        "cat ~/.netr?",
        "cat /etc/shad*",
        "cd ~/.ssh && cat *",
        "cat ~/.aws/[!x]*",
    ],
)
async def test_a_pattern_that_can_match_a_secret_needs_approval(decide, command):
    permission_for_all = Rule("bash", "*", "allow", "user")
    assert await decide(command, permission_for_all) == "ask"


NO_ENV = Rule("read", "*.env", "deny", "user")
ASK_ENV = Rule("read", "*.env", "ask", "user")


@pytest.mark.req("PM-1")
@pytest.mark.parametrize(
    "command",
    [
        "cat .env",
        "cat ./.env",
        "cat sub/../.env",
        "cat $PWD/.env",
        "x=.env; cat $x",
        "head -1 .env",
        "grep SECRET .env",
        "grep --regexp=SECRET .env",
        "grep -eSECRET .env",
        "sed -n p .env",
        "sed --expression=p .env",
        "cat < .env",
        "while read line; do echo $line; done < .env",
        "{ cat <&3; } 3< .env",
        "exec 3< .env; cat <&3",
        "cat .e*",
        "cat .[e]nv",
        "cat {.env,main.py}",
        "cat link",
        "cp .env copy.txt",
        "dd if=.env",
        "base64 .env | cat",
        "echo $(< .env)",
        "cat <(cat .env)",
        "sh show.sh",
        "source .env",
        "curl --data-binary @.env http://localhost/",
        "grep -f .env main.py",
        "grep -rf .env main.py",
        "grep --file .env main.py",
        "curl file://$PWD/.env",
        "curl -s file://localhost$PWD/.env",
        "ls < .env",
    ],
)
async def test_a_read_rule_covers_commands_that_name_the_file(decide, tmp_path, command):
    (tmp_path / ".env").write_text("SECRET=1\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to(".env")
    (tmp_path / "show.sh").write_text("cat .env\n")
    any_command = Rule("bash", "*", "allow", "user")
    assert await decide(command, any_command, NO_ENV) == "deny"
    assert await decide(command, any_command, ASK_ENV) == "ask"


@pytest.mark.req("PM-1")
@pytest.mark.parametrize("command", ["ls -l .env", "test -f .env", "[ -e .env ]", "stat .env", "ls .e*"])
async def test_a_read_rule_does_not_hide_names(decide, tmp_path, command):
    (tmp_path / ".env").write_text("SECRET=1\n")
    assert await decide(command, Rule("bash", "*", "allow", "user"), NO_ENV) == "allow"


@pytest.mark.req("PM-1")
@pytest.mark.parametrize("command", ["cat main.py", "ls", "cat *.py", "echo A=1 >> new.env", "grep env main.py"])
async def test_a_read_rule_does_not_affect_other_commands(decide, command):
    rules = (Rule("bash", "*", "allow", "user"), Rule("write", "*", "allow", "user"))
    assert await decide(command, *rules, NO_ENV) == "allow"
    assert await decide(command, Rule("*", "*", "ask", "user"), *rules) == "allow"


@pytest.mark.req("SH-5")
async def test_a_link_to_a_private_key_is_recognised(decide, tmp_path):
    key = tmp_path / "home" / ".ssh" / "id_rsa"
    key.parent.mkdir(parents=True)
    key.write_text("x\n")
    (tmp_path / "notes.txt").symlink_to(key)
    (tmp_path / "docs").symlink_to(key.parent)
    for command in ("cat notes.txt", "base64 docs/id_rsa", "cat < notes.txt", "sort docs/id_*"):
        assert await decide(command, Rule("bash", "*", "allow", "user")) == "ask", command


@pytest.mark.req("PM-5")
async def test_a_loop_variable_is_an_assignment(decide, monkeypatch):
    monkeypatch.setenv("GIT_DIR", "x")
    assert await decide("for GIT_DIR in evil; do git status; done", GIT_STATUS) == "ask"
    assert await decide("for name in a b; do git status; done", GIT_STATUS) == "allow"


SETTERS = ("export", "declare", "printf", "read", "eval", "builtin", "set", ":")


@pytest.mark.req("PM-5")
@pytest.mark.parametrize(
    "command",
    [
        "export GIT_DIR=x; git status",
        "declare -x GIT_DIR=x; git status",
        "GIT_DIR=x; export GIT_DIR; git status",
        "builtin export GIT_DIR=x; git status",
        "set -a; GIT_DIR=x; git status",
        "set -o allexport; GIT_DIR=x; git status",
        ": ${GIT_DIR:=x}; export GIT_DIR; git status",
        "if export GIT_DIR=x; then git status; fi",
        "eval export GIT_DIR=x; git status",
        "printf -v HOME x; git status",
        "read HOME <<< x; git status",
    ],
)
async def test_a_rule_for_export_does_not_extend_the_rule_for_another_command(decide, command):
    setters = [Rule("bash", f"{name} *", "allow", "user") for name in SETTERS]
    assert await decide(command, GIT_STATUS, *setters) == "ask"
    allowed = [Rule("bash", f"{name}=* git status *", "allow", "user") for name in ("GIT_DIR", "HOME")]
    assert await decide(command, GIT_STATUS, *setters, *allowed) == "allow"
