"""Handlers for cloud and forge clients that delete, stop or grant access remotely."""

import re
from collections.abc import Callable
from itertools import pairwise

from ostler.policy.shell import unknown_programs
from ostler.policy.shell.command_call import NO_STDIN, CommandCall, CommandHandler
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT
from ostler.policy.shell.option_parser import parse_options

_DANGEROUS_VERBS = re.compile(
    r"schedule-.*deletion|(?:\w+-)*(?:rm|rb|reboot|uninstall|delete|terminate|destroy|remove|purge|deregister|detach"
    r"|revoke|reset|stop|deallocate|power-off|restart|release|leave|deactivate|disable)(?:-.*)?"
    r"|(?:attach|put|set|update)-.*(?:policy|acl)|(?:modify|change)-.*|add-iam-policy-binding"
    r"|create-(?:access-key|login-profile|user|key-pair)|add-user-to-group|update-access-key|put-public-access-block"
    r"|authorize-.*ingress|update-function-code"
)
_DELETING_OPTIONS = frozenset({"--delete", "--delete-unmatched-destination-objects"})
_SCALES_TO_ZERO = re.compile(
    r"--(?:desired-c\w+|min-size|max-size|num-nodes|node-count|instance-count|replicas)[= ]0(?: |$)"
)
_GRANTS_ACCESS = re.compile(
    r"^(?:iam|acl|defacl) (?:ch|set)\b|\b(?:keys|role assignment|access-keys?|credential)s? create\b"
)
_READ_ONLY_VERB = re.compile(r"(?:list|ls|describe|get|show|tail|wait)(?:-.*)?")
_MAYBE_READ_ONLY = re.compile(
    r"(?:list|ls|describe|get|show|view|head|cp|sync|wait|logs?|read|query|filter|download)(?:-|$)"
)
_MAX_VERB_WORDS = 4  # the subcommand is within this many words


def _cloud(call: CommandCall) -> str:
    texts = call.arg_texts()
    pairs = [pair for pair in pairwise(["", *texts]) if pair[1][:1] != "-" and not pair[0].startswith("--")]
    operands = [text for _, text in pairs]
    if _DELETING_OPTIONS & set(texts) or ("-d" in texts and "rsync" in operands):
        return "deletes remote resources"
    call.evaluate_texts(parse_options(call.args, "", ("command",)).values("command"), NO_STDIN)
    if any(
        word.startswith(UNKNOWN_TEXT)
        for word in operands[: min(_first_index(operands, _MAYBE_READ_ONLY.match), _MAX_VERB_WORDS)]
    ):
        return "its subcommand is known only at run time"
    if _SCALES_TO_ZERO.search(" ".join(texts)):
        return "stops remote resources"
    if _GRANTS_ACCESS.search(" ".join(operands[:_MAX_VERB_WORDS])):
        return "grants permissions or creates keys"
    # the word after a short option may be its value rather than a verb
    read_only_index = _first_index(
        [text if previous[:1] != "-" else "" for previous, text in pairs], _READ_ONLY_VERB.fullmatch
    )
    deletes = any(map(_DANGEROUS_VERBS.fullmatch, operands[: min(read_only_index, _MAX_VERB_WORDS)]))
    deletes_abbreviated = call.name == "doctl" and bool({"d", "del"} & set(operands[2:_MAX_VERB_WORDS]))
    return (
        "deletes or stops remote resources"
        if deletes or deletes_abbreviated
        else unknown_programs.nested_command_reason(call)
    )


def _first_index(words: list[str], predicate: Callable[[str], object]) -> int:
    """Return the index of the first word that fulfils the predicate, or the number of words."""
    return next((index for index, word in enumerate(words) if predicate(word)), len(words))


def _terraform(call: CommandCall) -> str:
    texts = set(call.arg_texts())
    return "changes remote infrastructure" if {"-destroy", "-auto-approve"} & texts and "plan" not in texts else ""


def _github(call: CommandCall) -> str:
    methods = [text.rpartition("=")[2].removeprefix("-X") for text in call.arg_texts()]
    if call.arg_texts()[:1] == ["api"] and "DELETE" in methods:
        return "deletes something on the server"
    return unknown_programs.deleting_option_reason(call) if call.name == "gh" else unknown_programs.danger_reason(call)


HANDLERS: dict[str, CommandHandler] = {
    **dict.fromkeys(("gcloud", "az", "aws", "doctl", "gsutil", "ibmcloud", "oci"), _cloud),
    **dict.fromkeys(("terraform", "tofu"), _terraform),
    **dict.fromkeys(("gh", "glab"), _github),
}
