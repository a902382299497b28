"""What an agent may do where nobody is asked: the table of `ostler acp run`, and a person's own rules over it."""

from collections.abc import Sequence
from pathlib import Path

from ostler.policy.rules import parse
from ostler.policy.verdict import Policy
from ostler.settings.effective import Settings
from ostler.settings.files import read_document
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.permission import Rule

_WRITES = ("edit", "patch", "delete", "write")


def acp_policy(
    settings: Settings, *, write: bool, yolo: bool, directories: Sequence[str] = (), policy_file: str = ""
) -> Policy:
    """Reads in the workspace, writes there with --write, reads anywhere with --yolo, and all else.

    Writes outside and the dangerous class are beyond it: the guards refuse them, whatever a rule says.
    """
    return Policy(
        rules=(
            Rule("*", "*", "allow", "acp run"),
            *(Rule(key, "*", "allow" if write or yolo else "deny", _without(write or yolo)) for key in _WRITES),
            Rule("external_directory", "*", "allow" if yolo else "deny", "--yolo" if yolo else "without --yolo"),
            *(Rule("external_directory", f"{folder}/*", "allow", "--add-dir") for folder in directories),
            *_own_rules(policy_file),
        ),
        narrow=(tuple(settings.narrow_rules()),),
        attended=False,
        strangers_pass=True,
    )


def _without(write: bool) -> str:
    return "--write" if write else "without --write"


def _own_rules(policy_file: str) -> tuple[Rule, ...]:
    """The rules of a file, written as the `permission` setting is."""
    if not policy_file:
        return ()
    document = read_document(Path(policy_file))
    if document is None:
        raise UsageError(f"there is no policy file {policy_file}")
    value = document.value
    value = value.get("permission", value) if isinstance(value, dict) else value
    if not isinstance(value, (dict, str)):
        raise UsageError(f"{policy_file} holds no rules", hint='write them as {"bash": {"git *": "allow"}}')
    return tuple(parse(value, f"--policy {policy_file}"))
