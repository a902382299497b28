"""What an agent may do where nobody is asked: the table of `ostler acp run`, and a person's own rules over it."""

from collections.abc import Sequence
from pathlib import Path

from ostler.core.errors import UsageError
from ostler.core.permission import Rule
from ostler.policy.permission_rules import parse_rules
from ostler.policy.verdict import Policy
from ostler.settings.config_files import read_config
from ostler.settings.effective import Settings

_WRITE_KEYS = ("edit", "patch", "delete", "write")


def acp_policy(
    settings: Settings, *, write: bool, yolo: bool, directories: Sequence[str] = (), policy_file: str = ""
) -> Policy:
    """Reads in the workspace, writes there with --write, reads anywhere with --yolo, and all else.

    Writes outside and the dangerous class are beyond it: the guards refuse them, whatever a rule says.
    """
    return Policy(
        rules=(
            Rule("*", "*", "allow", "acp run"),
            *(
                Rule(key, "*", "allow" if write or yolo else "deny", _write_source(write or yolo))
                for key in _WRITE_KEYS
            ),
            Rule("external_directory", "*", "allow" if yolo else "deny", "--yolo" if yolo else "without --yolo"),
            *(Rule("external_directory", f"{folder}/*", "allow", "--add-dir") for folder in directories),
            *_read_rules(policy_file),
        ),
        restrictions=(tuple(settings.restricting_rules()),),
        interactive=False,
        allow_unknown_programs=True,
    )


def _write_source(write: bool) -> str:
    return "--write" if write else "without --write"


def _read_rules(policy_file: str) -> tuple[Rule, ...]:
    """The rules of a file, written as the `permission` setting is."""
    if not policy_file:
        return ()
    document = read_config(Path(policy_file))
    if document is None:
        raise UsageError(f"there is no policy file {policy_file}")
    value = document.value
    value = value.get("permission", value) if isinstance(value, dict) else value
    if not isinstance(value, (dict, str)):
        raise UsageError(f"{policy_file} holds no rules", hint='write them as {"bash": {"git *": "allow"}}')
    return tuple(parse_rules(value, f"--policy {policy_file}"))
