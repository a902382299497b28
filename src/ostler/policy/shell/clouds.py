"""Clients of clouds and forges: what they delete, stop, open or hand out on machines elsewhere."""

import re
from collections.abc import Callable
from itertools import pairwise

from ostler.policy.shell import strangers
from ostler.policy.shell.args import HOLE
from ostler.policy.shell.call import NO_FEED, Call, Handler
from ostler.policy.shell.options import parse

_VERBS = re.compile(
    r"schedule-.*deletion|(?:\w+-)*(?:rm|rb|reboot|uninstall|delete|terminate|destroy|remove|purge|deregister|detach"
    r"|revoke|reset|stop|deallocate|power-off|restart|release|leave|deactivate|disable)(?:-.*)?"
    r"|(?:attach|put|set|update)-.*(?:policy|acl)|(?:modify|change)-.*|add-iam-policy-binding"
    r"|create-(?:access-key|login-profile|user|key-pair)|add-user-to-group|update-access-key|put-public-access-block"
    r"|authorize-.*ingress|update-function-code"
)
_DELETING_OPTIONS = frozenset({"--delete", "--delete-unmatched-destination-objects"})
_TO_NOTHING = re.compile(
    r"--(?:desired-c\w+|min-size|max-size|num-nodes|node-count|instance-count|replicas)[= ]0(?: |$)"
)
_GIVES_RIGHTS = re.compile(
    r"^(?:iam|acl|defacl) (?:ch|set)\b|\b(?:keys|role assignment|access-keys?|credential)s? create\b"
)
_LOOKS = re.compile(r"(?:list|ls|describe|get|show|tail|wait)(?:-.*)?")
_MAY_LOOK = re.compile(r"(?:list|ls|describe|get|show|view|head|cp|sync|wait|logs?|read|query|filter|download)(?:-|$)")
_DEEP = 4  # so many words say what is done to what


def _cloud(call: Call) -> str:
    texts = call.texts()
    pairs = [pair for pair in pairwise(["", *texts]) if pair[1][:1] != "-" and not pair[0].startswith("--")]
    operands = [text for _, text in pairs]
    if _DELETING_OPTIONS & set(texts) or ("-d" in texts and "rsync" in operands):
        return "deletes what others may use"
    for command in parse(call.args, "", ("command",)).values("command"):
        call.text(command.text, NO_FEED)
    if any(word.startswith(HOLE) for word in operands[: min(_first(operands, _MAY_LOOK.match), _DEEP)]):
        return "what it shall do is known only when it runs"
    if _TO_NOTHING.search(" ".join(texts)):
        return "stops what others may use"
    if _GIVES_RIGHTS.search(" ".join(operands[:_DEEP])):
        return "gives somebody rights or keys"
    # the word after a short option may be its value, and then says nothing of what is done
    told = _first([text if before[:1] != "-" else "" for before, text in pairs], _LOOKS.fullmatch)
    deletes = any(map(_VERBS.fullmatch, operands[: min(told, _DEEP)]))
    shortened = call.name == "doctl" and bool({"d", "del"} & set(operands[2:_DEEP]))
    return "deletes or stops what others may use" if deletes or shortened else strangers.hands_on(call)


def _first(words: list[str], fits: Callable[[str], object]) -> int:
    """Where the first word stands that fits; behind the last one when none does."""
    return next((at for at, word in enumerate(words) if fits(word)), len(words))


def _terraform(call: Call) -> str:
    texts = set(call.texts())
    return "changes what runs elsewhere" if {"-destroy", "-auto-approve"} & texts and "plan" not in texts else ""


def _github(call: Call) -> str:
    methods = [text.rpartition("=")[2].removeprefix("-X") for text in call.texts()]
    if call.texts()[:1] == ["api"] and "DELETE" in methods:
        return "deletes something on the server"
    return strangers.deleting_option(call) if call.name == "gh" else strangers.judge(call)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("gcloud", "az", "aws", "doctl", "gsutil", "ibmcloud", "oci"), _cloud),
    **dict.fromkeys(("terraform", "tofu"), _terraform),
    **dict.fromkeys(("gh", "glab"), _github),
}
