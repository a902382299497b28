"""Custom slash commands: names, locations and expansion of arguments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostler.knowledge.command_templates import TemplateFile, TemplateShell, TemplateText, expand_template, split_words
from ostler.knowledge.custom_commands import command_name, find_commands
from ostler.knowledge.tool_lists import ToolPattern

NAMES = {
    "apply.md": "apply",
    "openspec/commands/apply.md": "openspec:apply",
    "kaleido/tools/run.md": "kaleido:tools:run",
    "commands/commands/x.md": "x",
    "commands.md": "",
    "a b.md": "",
    "a:b.md": "",
    "über.md": "über",
    "*.md": "",
    "-x.md": "",
    "$(x).md": "",
    "n" * 200 + ".md": "",
}


@pytest.mark.req("EN-11")
@pytest.mark.parametrize(("path", "name"), NAMES.items())
def test_names(path, name):
    assert command_name(path) == name


LOCATIONS = [
    ".ostler/commands",
    ".eidolon",
    ".opencode/commands",
    ".opencode/command",
    ".claude/commands",
    "~/.ostler/commands",
    "~/.eidolon/commands",
    "~/.config/opencode/commands",
    "~/.config/opencode/command",
    "~/.opencode/commands",
    "~/.opencode/command",
    "~/.claude/commands",
]


@pytest.mark.req("EN-11", "DX-5")
def test_locations_and_precedence(folders):
    for number in range(len(LOCATIONS) - 1, -1, -1):
        folders.write({f"{LOCATIONS[number]}/git/fix.md": f"from {number}"})
        commands = find_commands(folders.sources())
        assert commands["git:fix"].template == f"from {number}"
        assert commands["git:fix"].origin == f"{LOCATIONS[number]}/git/fix.md"
        assert commands["git:fix"].scope == ("user" if LOCATIONS[number].startswith("~") else "project")
        assert len(commands) == 1


@pytest.mark.req("EN-11")
def test_only_commands_are_read_from_eidolons_folder(folders):
    folders.write(
        {
            ".eidolon/openspec/commands/apply.md": "a",
            ".eidolon/commands/kaleido/tools/run.md": "b",
            ".eidolon/agents/x.md": "no",
            ".eidolon/skills/y/SKILL.md": "no",
            ".ostler/agents/z.md": "no",
        }
    )
    assert list(find_commands(folders.sources())) == ["kaleido:tools:run", "openspec:apply"]


def test_fields(folders):
    folders.write(
        {
            ".claude/commands/all.md": "---\ndescription: Fix an issue\nargument-hint: [number] [note]\nagent: plan\n"
            "model: small\nsubtask: true\nallowed-tools: Bash(git add:*), Read\n---\nFix $1.\n",
            ".claude/commands/none.md": "# Tidy up\n\nDo it.",
        }
    )
    commands = find_commands(folders.sources())
    full = commands["all"]
    assert (full.description, full.hint, full.template) == ("Fix an issue", "[number] [note]", "Fix $1.")
    assert (full.agent, full.model, full.subtask) == ("plan", "small", True)
    assert full.tools == (ToolPattern("bash", "git add *"), ToolPattern("read"))
    assert commands["none"].description == "Tidy up"


@pytest.mark.req("FS-2", "PM-8")
def test_hostile_files_are_ignored(folders):
    folder = folders.work / ".ostler" / "commands"
    folder.mkdir(parents=True)
    (folder / "out.md").symlink_to(folders.outside / "secret.md")
    (folder / "door").symlink_to(folders.outside)
    (folder / "loop").symlink_to(".")
    (folder / "binary.md").write_bytes(bytes(100))
    (folder / "empty.md").write_text("---\ndescription: x\n---\n")
    (folder / "line\nbreak.md").write_text("x")
    (folder / "good.md").write_text("x")
    commands = find_commands(folders.sources())
    assert "good" in commands
    assert not any("SECRET" in command.template for command in commands.values())
    assert "empty" not in commands
    assert all(name.isprintable() for name in commands)


# Template, arguments, and the expanded text.
EXPANDED = {
    "plain": ("Do it.", "", "Do it."),
    "appended": ("Do it.", "now  please", "Do it.\n\nnow  please"),
    "all": ("Fix $ARGUMENTS!", "a  b", "Fix a  b!"),
    "all, without arguments": ("Fix $ARGUMENTS!", "", "Fix !"),
    "first": ("Fix $1.", "a", "Fix a."),
    "the highest number gets the rest": ("Fix $1 with $2.", "a b c d", "Fix a with b c d."),
    "in any order": ("$2 then $1", "a b c", "b c then a"),
    "missing": ("[$1][$2]", "a", "[a][]"),
    "quotes": ("[$1][$2]", '"a b" c', "[a b][c]"),
    "single quotes": ("[$1][$2]", "'a b' c", "[a b][c]"),
    "quotes inside": ("[$1]", "a='b c'd", "[a=b cd]"),
    "open quote": ("[$1][$2]", 'it"s fine', '[it"s][fine]'),
    "an argument is not a placeholder": ("$1 $2", "$2 $ARGUMENTS", "$2 $ARGUMENTS"),
    "twice": ("$1 $1", "a b", "a b a b"),
    "ten": ("$10", "1 2 3 4 5 6 7 8 9 10 11", "10 11"),
    "money": ("It costs $100 and $0.", "", "It costs $100 and $0."),
    "a longer name": ("$ARGUMENTSX", "", "$ARGUMENTSX"),
    "money and arguments": ("It costs $100.", "ok", "It costs $100.\n\nok"),
}


@pytest.mark.req("EN-11")
@pytest.mark.parametrize("case", EXPANDED, ids=str)
def test_arguments(case):
    template, arguments, text = EXPANDED[case]
    expanded = expand_template(template, arguments)
    assert expanded.render() == text
    assert expanded.shell_commands == ()


@pytest.mark.req("EN-11", "PM-8")
def test_shell_commands_are_returned_as_data():
    expanded = expand_template("Changes:\n!`git diff $1`\nand !`git log`.", "main")
    assert expanded.parts == (
        TemplateText("Changes:\n"),
        TemplateShell("git diff main"),
        TemplateText("\nand "),
        TemplateShell("git log"),
        TemplateText("."),
    )
    assert expanded.shell_commands == ("git diff main", "git log")
    assert expanded.render(["A", "B"]) == "Changes:\nA\nand B."
    assert expanded.render() == "Changes:\n!`git diff main`\nand !`git log`."


@pytest.mark.req("PM-8")
@pytest.mark.parametrize("template", ["Look at $1.", "$ARGUMENTS", "Look."])
def test_argument_is_never_a_shell_command(template):
    expanded = expand_template(template, "!`rm -rf ~`")
    assert expanded.shell_commands == ()
    assert "!`rm" in expanded.render()


def test_command_output_is_not_expanded():
    expanded = expand_template("!`cat x` $1", "a")
    assert expanded.render(["$1 !`b`"]) == "$1 !`b` a"


FILES = {
    "template": ("Read @docs/a.md, then @b.md.", "", [("docs/a.md", False), ("b.md", False)]),
    "argument in a mention": ("Read @$1", "src/x.py", [("src/x.py", False)]),
    "typed": ("Review", "@src/x.py please", [("src/x.py", True)]),
    "both": ("@a", "@b", [("a", False), ("b", True)]),
    "not in a command": ("!`npm i @scope/x` @a", "", [("a", False)]),
    "not a mail address": ("mail a@b.c", "x@y", []),
    "empty": ("@$1", "", []),
}


@pytest.mark.req("EN-11")
@pytest.mark.parametrize("case", FILES, ids=str)
def test_files_are_returned_as_data(case):
    template, arguments, files = FILES[case]
    assert expand_template(template, arguments).files == tuple(TemplateFile(*file) for file in files)


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_can_be_expanded(template, arguments):
    expanded = expand_template(template, arguments)
    assert isinstance(expanded.render(), str)
    if "$" not in template and "`" not in template:
        assert expanded.render().startswith(template)


@pytest.mark.slow
@pytest.mark.timeout(5)
@pytest.mark.parametrize(
    "text", ["!`" * 100_000, "$1" * 100_000, '"' * 100_001, "'\"" * 100_000, "a'" * 100_001, "@(" * 100_000]
)
def test_hostile_text_is_expanded_in_linear_time(text):
    assert expand_template(text, text).parts
    assert isinstance(split_words(text), list)


@pytest.mark.req("EN-11", "PM-8")
@pytest.mark.parametrize(
    "argument", ["a; touch pwned", "$(touch pwned)", "'; touch pwned; '", '"; touch pwned; "', "\\'; touch pwned #"]
)
@pytest.mark.parametrize("shell", ["echo $1", "echo $ARGUMENTS", 'echo "x $1"', "echo 'x $1'", "echo \\$1", "echo $$1"])
def test_arguments_are_data_in_shell_commands(tmp_path, shell, argument):
    import subprocess

    (command,) = expand_template(f"!`{shell}`", argument).shell_commands
    for program in ("sh", "bash"):
        subprocess.run([program, "-c", command], cwd=tmp_path, check=False, capture_output=True)
    assert not (tmp_path / "pwned").exists()
    assert (
        subprocess.run(
            ["sh", "-c", expand_template("!`printf %s,%s $1 $2`", "'a b' c").shell_commands[0]],
            check=True,
            capture_output=True,
        ).stdout
        == b"a b,c"
    )
