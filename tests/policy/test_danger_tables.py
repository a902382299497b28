"""The danger tables are consistent, and every entry needs approval."""

import pytest

from ostler.policy import danger_tables
from ostler.policy.danger_subcommands import DANGEROUS_SUBCOMMANDS
from ostler.policy.shell import analyse

REQUIRED_VERBS = ("rm", "mv", "chmod", "chown", "dd", "mkfs", "shutdown", "reboot", "sudo")  # listed in the requirement


@pytest.mark.req("SH-3")
@pytest.mark.parametrize("verb", REQUIRED_VERBS)
def test_required_verbs_need_approval_with_any_arguments(verb):
    assert verb in danger_tables.ALWAYS_DANGEROUS
    for arguments in ("", " x", " -x y", ' "$z"'):
        assert analyse(verb + arguments, cwd="/w", exists=lambda _: False).verdict != "ordinary"


def verdict(line):
    return analyse(line, cwd="/w", exists=lambda _: False).verdict


def test_every_always_dangerous_command_needs_approval():
    assert [verb for verb in danger_tables.ALWAYS_DANGEROUS if verdict(f"{verb} x") == "ordinary"] == []


def test_commands_with_dangerous_forms_are_ordinary_otherwise():
    assert set(danger_tables.DANGEROUS_FORMS).isdisjoint(danger_tables.ALWAYS_DANGEROUS)
    assert [
        name
        for name in danger_tables.DANGEROUS_FORMS
        if not analyse(f"{name} x", cwd="/w", exists=lambda _: False).no_danger_found
    ] == []


def test_help_option_is_ordinary():
    assert [verb for verb in danger_tables.ALWAYS_DANGEROUS if verdict(f"{verb} --help") != "ordinary"] == []


def test_every_listed_subcommand_needs_approval():
    lines = [
        f"{name} {' '.join(words).replace('*', 'x')}"
        for name, lines in DANGEROUS_SUBCOMMANDS.items()
        for words, _ in lines
    ]
    assert [line for line in lines if verdict(line) == "ordinary"] == []


def test_every_listed_option_needs_approval():
    for name, (letters, longs, *_) in danger_tables.DANGEROUS_OPTIONS.items():
        options = [*(f"-{letter}" for letter in letters), *(f"--{long}" for long in longs)]
        assert options, name
        assert [option for option in options if verdict(f"{name} {option} x") == "ordinary"] == [], name


def test_command_in_a_variable_is_classified():
    for name in danger_tables.COMMAND_VARIABLES:
        lines = (f"{name}='rm x' git log", f"export {name}='rm x'", f"env {name}='rm x' ls", f"{name}=cat git log")
        assert [verdict(line) for line in lines] == ["confirm", "confirm", "confirm", "ordinary"], name


def test_variable_that_loads_code_needs_approval():
    for name in danger_tables.CODE_VARIABLES:
        assert [verdict(f"{name}=./x ls"), verdict(f"env {name}=./x ls")] == ["confirm", "confirm"], name


def test_every_variable_is_in_one_table():
    tables = [
        danger_tables.COMMAND_VARIABLES,
        danger_tables.CODE_VARIABLES,
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
