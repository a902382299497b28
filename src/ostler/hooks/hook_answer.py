"""Reads what a hook program answered: failure, objection, added context."""

import json
from typing import Any

from ostler.core.commands import CommandResult
from ostler.knowledge.hooks import HookSpec

EXIT_DENY = 2
DECISIONS = ("allow", "deny", "approve", "block")
MAX_REASON_LENGTH = 500


def failure(hook: HookSpec, result: CommandResult) -> str:
    """Return why the hook failed, or an empty string if its answer is valid."""
    if result.exit_code == EXIT_DENY:
        return ""
    if result.exit_code != 0:
        return "timeout" if result.timed_out else " ".join(_reason(result).split())
    answer = _parse_answer(result.stdout)
    if answer is None and hook.style == "ostler":
        return "its output is not a JSON object"
    decision = (answer or {}).get("decision")
    valid = decision is None or (isinstance(decision, str) and decision in DECISIONS)
    return "" if valid else f"its decision {str(decision)[:40]!r} is not one of {', '.join(DECISIONS)}"


def objection(result: CommandResult) -> str:
    """Return why the hook objects, or an empty string."""
    if result.exit_code == EXIT_DENY:
        return _reason(result)
    answer = _parse_answer(result.stdout) or {}
    if answer.get("decision") in ("deny", "block"):
        return str(answer.get("reason") or "denied by a hook")[:MAX_REASON_LENGTH]
    more = answer.get("hookSpecificOutput")
    if isinstance(more, dict) and more.get("permissionDecision") in ("deny", "ask"):
        return str(more.get("permissionDecisionReason") or "denied by a hook")[:MAX_REASON_LENGTH]
    if answer.get("continue") is False:
        return str(answer.get("stopReason") or "stopped by a hook")[:MAX_REASON_LENGTH]
    return ""


def added_context(hook: HookSpec, stdout: str) -> str:
    """Return the context that a hook adds to a prompt."""
    answer = _parse_answer(stdout) or {}
    more = answer.get("hookSpecificOutput")
    added = more.get("additionalContext") if isinstance(more, dict) else answer.get("context")
    if isinstance(added, str):
        return added
    return stdout.strip() if hook.style == "claude" and not answer else ""


def _parse_answer(stdout: str) -> dict[str, Any] | None:
    """Return the JSON object in the output, an empty one for other text, or None for broken JSON.

    Lines before the object, such as warnings, are ignored.
    """
    text = stdout.lstrip("\ufeff \t\r\n")
    is_object = text.startswith("{")
    try:
        answer = json.loads(text if is_object else text[text.find("\n{") :])
    except (ValueError, RecursionError):
        answer = None if is_object else {}
    return answer if is_object or isinstance(answer, dict) else {}


def _reason(result: CommandResult) -> str:
    return (result.stderr or result.stdout).strip()[:MAX_REASON_LENGTH] or f"exit {result.exit_code}"
