"""The danger tables are consistent, and every entry needs approval."""

from pathlib import Path

import pytest

from ostler.policy import danger_tables
from ostler.policy.shell import analyse, program_table
from ostler.policy.shell.program_table import group, rows

REQUIRED_VERBS = ("rm", "mv", "chmod", "chown", "dd", "mkfs", "shutdown", "reboot", "sudo")  # listed in the requirement


@pytest.mark.req("SH-3")
@pytest.mark.parametrize("verb", REQUIRED_VERBS)
def test_required_verbs_need_approval_with_any_arguments(verb):
    assert verb in rows("always")
    for arguments in ("", " x", " -x y", ' "$z"'):
        assert analyse(verb + arguments, cwd="/w", exists=lambda _: False).verdict != "ordinary"


def verdict(line):
    return analyse(line, cwd="/w", exists=lambda _: False).verdict


def test_every_always_dangerous_command_needs_approval():
    assert [verb for verb in rows("always") if verdict(f"{verb} x") == "ordinary"] == []


def test_commands_with_dangerous_forms_are_ordinary_otherwise():
    assert set(rows("form")).isdisjoint(rows("always"))
    assert [
        name for name in rows("form") if not analyse(f"{name} x", cwd="/w", exists=lambda _: False).no_danger_found
    ] == []


def test_help_option_is_ordinary():
    assert [verb for verb in rows("always") if verdict(f"{verb} --help") != "ordinary"] == []


def test_every_listed_subcommand_needs_approval():
    lines = [
        f"{name} {' '.join(subcommand.words).replace('*', 'x')}"
        for name in program_table.with_dangerous_subcommands()
        for subcommand in program_table.dangerous_subcommands(name)
    ]
    assert [line for line in lines if verdict(line) == "ordinary"] == []


def test_every_listed_option_needs_approval():
    for name in rows("options"):
        dangerous = program_table.dangerous_options(name)
        options = [f"-{option}" if len(option) == 1 else f"--{option}" for option in dangerous.names]
        assert options, name
        assert [option for option in options if verdict(f"{name} {option} x") == "ordinary"] == [], name


def test_command_in_a_variable_is_classified():
    for name in group("command-variables"):
        lines = (f"{name}='rm x' git log", f"export {name}='rm x'", f"env {name}='rm x' ls", f"{name}=cat git log")
        assert [verdict(line) for line in lines] == ["confirm", "confirm", "confirm", "ordinary"], name


def test_variable_that_loads_code_needs_approval():
    for name in group("code-variables"):
        assert [verdict(f"{name}=./x ls"), verdict(f"env {name}=./x ls")] == ["confirm", "confirm"], name


def test_every_variable_is_in_one_table():
    tables = [
        group("command-variables"),
        group("code-variables"),
        danger_tables.PROMPT_VARIABLES,
        set(danger_tables.OPTION_VARIABLES),
    ]
    assert sum(map(len, tables)) == len(set().union(*tables))


@pytest.mark.req("SH-6")
@pytest.mark.parametrize(
    "device",
    ["/dev/sda", "/dev/sda1", "/dev/nvme0n1", "/dev/vdb", "/dev/mmcblk0", "/dev/mapper/root", "/dev/disk/by-id/x"],
)
@pytest.mark.parametrize(
    "line", ["echo > {}", "dd of={}", "cp x {}", "tee {}", "mkfs.ext4 {}", "curl -o {} https://x", "ls 2> {}"]
)
def test_writing_to_a_disk_is_denied(line, device):
    assert analyse(line.format(device), cwd="/w").verdict == "deny"


@pytest.mark.parametrize("line", ["cat /dev/sda", "dd if=/dev/sda of=x", "ls /dev/sda", "file /dev/nvme0n1"])
def test_reading_from_a_disk_is_not_denied(line):
    assert analyse(line, cwd="/w", exists=lambda _: False).verdict != "deny"


@pytest.mark.parametrize("key", ["tool", "one-dash-tool", "wrapper", "runner-options"])
def test_every_row_about_arguments_is_valid(key):
    assert [name for name in rows(key) if program_table.argument_spec(name, key) is None] == []


@pytest.mark.parametrize(
    ("line", "source"),
    [
        ("rm x", "(rm: always)"),
        ("apt remove x", "(apt: destroys)"),
        ("pip3 uninstall x", "(pip: destroys)"),
        ("npm publish", "(npm: publishes)"),
        ("date -s x", "(date: options)"),
        ("arp -d x", "(arp: form)"),
        ("sort -o /etc/hosts x", "(sort: tool)"),
        ("kubectl frobnicate x", "(kubectl: verbs)"),
        ("timeout 5 rm x", "(rm: always)"),
        ("frobnicate x", "policy/shell/known.txt does not list it"),
        ("git push --force", "policy/shell/git.py (_git)"),
    ],
)
def test_analysis_cites_the_row_or_function_of_its_reason(line, source):
    found = analyse(line, cwd="/w", exists=lambda path: path == "/etc/hosts").source
    assert found.endswith(source)
    if ".txt:" in found:
        file, number = found.partition(" ")[0].split(":")
        key = source.strip("()").partition(": ")[2]
        text = (Path(program_table.__file__).parents[2] / file).read_text("utf-8")
        assert text.splitlines()[int(number) - 1].startswith(f"  {key} ")


def test_ordinary_line_has_no_source():
    assert analyse("ls", cwd="/w").source == ""
