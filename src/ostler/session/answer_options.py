"""Builds the answers of an approval request; each answer names what it covers."""

import posixpath
from collections.abc import Sequence

import msgspec

from ostler.core.permission import AnswerOption, Decision, Need, Permission, Rule
from ostler.policy.permission_rules import EDITING_TOOLS
from ostler.policy.presets import allow_rules
from ostler.policy.wildcard import is_literal
from ostler.text.sanitise import escape_invisible

ALLOW_ONCE, DENY = AnswerOption("once", "Allow once", "allow_once"), AnswerOption("deny", "Deny", "deny")
EDITS_ID, FOLDER_ID = "edits", "folder"
LASTING_KINDS = ("allow_session", "allow_always")
# Where no rule can be added, the agent alone decides what its lasting answer covers.
OTHER_LABELS = {"allow_always": "Allow, also later as the agent decides", "deny_always": "Deny, also later"}
MAX_OWN_LABEL = 60
MAX_RULE_LENGTH = 100  # longer rules are listed beside the answers
_RULE_KEYS = ("edit", "mkdir", "write_chunk")  # a rule for `edit` includes write, edit and patch


def with_answers(permission: Permission, *, once_only: bool) -> Permission:
    """Return the permission with its possible answers; a remote agent's own answers stay, with what they cover here."""
    standard = _standard_options(permission)
    own = tuple(_explained(option, standard) for option in permission.options)
    if once_only:
        return msgspec.structs.replace(permission, options=own or (ALLOW_ONCE, DENY))
    edits = _edit_options(permission.needs)
    if not own:
        *lasting, deny = standard
        return msgspec.structs.replace(permission, options=(*lasting[:2], *edits, *lasting[2:], deny))
    allows = [option for option in own if not option.kind.startswith("deny")]
    denies = [option for option in own if option.kind.startswith("deny")]
    used_ids = {option.id for option in own}
    added = [option for option in edits if allows and option.id not in used_ids]
    return msgspec.structs.replace(permission, options=(*allows, *added, *denies) if added else own)


def _explained(option: AnswerOption, standard: Sequence[AnswerOption]) -> AnswerOption:
    """Return an agent's own answer with what it does here before the agent's name for it, which may say anything."""
    ours = next((known.label for known in standard if known.kind == option.kind), OTHER_LABELS.get(option.kind, "Deny"))
    theirs = _one_line(option.label[:MAX_OWN_LABEL])
    is_same = theirs.casefold() in ("", ours.casefold())
    return msgspec.structs.replace(option, label=ours if is_same else f'{ours} ("{theirs}")')


def rules_of_decision(permission: Permission, decision: Decision) -> tuple[Rule, ...]:
    """Return the rules that a lasting decision to allow adds."""
    option = next((option for option in permission.options if option.id == decision.option_id), None)
    rules = option.rules if option and option.rules else _rules_of_needs(permission)
    answered = f"answer of {decision.who}" if decision.who else "your answer"
    return tuple(msgspec.structs.replace(rule, origin=f"{answered}: {decision.scope}") for rule in rules)


def unnamed_rules(permission: Permission) -> list[str]:
    """Return the rules of the lasting answers that their labels do not name."""
    text = _summary(_rules_of_needs(permission))
    is_named = all(
        option.rules or text in option.label for option in permission.options if option.kind in LASTING_KINDS
    )
    return [] if is_named else [_one_line(f"{rule.key}: {rule.pattern}") for rule in _rules_of_needs(permission)]


def _standard_options(permission: Permission) -> tuple[AnswerOption, ...]:
    if not all(map(_has_exact_rule, permission.needs)):
        return ALLOW_ONCE, DENY
    rules = _rules_of_needs(permission)
    text = _summary(rules)
    if len(text) > MAX_RULE_LENGTH:
        text = "the listed rule" if len(rules) == 1 else f"the {len(rules)} listed rules"
    return (
        ALLOW_ONCE,
        AnswerOption("session", f"Allow {text} in this session", "allow_session"),
        AnswerOption("always", f"Always allow {text} in this project", "allow_always"),
        DENY,
    )


def _rules_of_needs(permission: Permission) -> tuple[Rule, ...]:
    needs = filter(_has_exact_rule, permission.needs)
    return tuple(dict.fromkeys(Rule(need.key, need.rule_pattern or need.subject, "allow") for need in needs))


def _has_exact_rule(need: Need) -> bool:
    """Return whether a rule can name what is needed: the tool's pattern, or a subject that is not a pattern itself."""
    return need.rule_pattern not in ("", need.subject) or is_literal(need.subject)


def _summary(rules: Sequence[Rule]) -> str:
    texts = (f"{'run' if rule.key == 'bash' else rule.key} {rule.pattern}" for rule in rules)
    return _one_line(", ".join(texts)) or "this"


def _one_line(text: str) -> str:
    return escape_invisible(text).replace("\n", "\\n")


def _edit_options(needs: Sequence[Need]) -> tuple[AnswerOption, ...]:
    """Return the answers for more edits than the requested ones, if all that is asked is to edit the workspace."""
    if not needs or not all(map(_is_edit, needs)):
        return ()
    all_edits = "Allow all edits in this workspace, in this session"
    options = [AnswerOption(EDITS_ID, all_edits, "allow_session", allow_rules("", *_RULE_KEYS))]
    if folder := _common_folder(needs):
        rules = tuple(Rule(key, f"{folder}/*", "allow") for key in _RULE_KEYS)
        label = f"Allow edits in {_one_line(folder)}/ in this session"
        options.insert(0, AnswerOption(FOLDER_ID, label, "allow_session", rules))
    return tuple(options)


def _is_edit(need: Need) -> bool:
    """Return whether a need is to edit a file of the workspace; other paths are absolute."""
    return need.key in EDITING_TOOLS and need.danger == "ordinary" and need.subject[:1] not in ("", "/")


def _common_folder(needs: Sequence[Need]) -> str:
    """Return the folder of all paths; empty for the root, or if a rule would read the name as a wildcard."""
    folder = posixpath.commonpath([posixpath.dirname(need.subject) for need in needs])
    return folder if is_literal(f"{folder}/") and folder != "." else ""
