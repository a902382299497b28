"""Policy for `ostler acp run`, which is non-interactive: defaults, flags, and the user's policy file."""

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
    """Return a policy that allows everything except edits without --write and outside paths without --yolo.

    Writes outside the workspace and dangerous calls are denied by the danger check, even if a rule allows them.
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
    """Read a file with rules in the form of the `permission` setting. Raises `UsageError`."""
    if not policy_file:
        return ()
    document = read_config(Path(policy_file))
    if document is None:
        raise UsageError(f"policy file {policy_file} not found")
    value = document.value
    value = value.get("permission", value) if isinstance(value, dict) else value
    if not isinstance(value, (dict, str)):
        raise UsageError(f"no rules in policy file {policy_file}", hint='write them as {"bash": {"git *": "allow"}}')
    return tuple(parse_rules(value, f"--policy {policy_file}"))
