"""Check that nothing changes a denial by the rules."""

from itertools import product

import pytest

from ostler.core.permission import Need, Permission, Rule
from ostler.policy.presets import BASELINE, YOLO_FLAG
from ostler.policy.profiles import MODES, PROFILES
from ostler.policy.verdict import Policy, evaluate_permission

DENY = Rule("*", "*", "deny", "the user")
NEEDS = [
    Need("read", "a"),
    Need("write", "a"),
    Need("edit", "a"),
    Need("bash", "ls", sandboxed=True),
    Need("external_directory", "/x"),
]


@pytest.mark.req("PM-2")
@pytest.mark.invariant("P5")
@pytest.mark.parametrize("denial", ["rules", "restrictions", "restrictions of the call"])
@pytest.mark.parametrize(("profile", "mode"), list(product(PROFILES, MODES)))
@pytest.mark.parametrize("origin", ["model", "person", "protocol", "validation"])
@pytest.mark.sampled(every=3)
def test_denial_by_the_rules_is_final(denial, profile, mode, origin):
    policy = Policy(
        rules=(*BASELINE, DENY) if denial == "rules" else (Rule("*", "*", "allow"),),
        restrictions=((DENY,),) if denial == "restrictions" else (),
        profile=profile,
        whitelist=("ls",),
        flags=(*YOLO_FLAG, Rule("*", "*", "allow", "--allow"), *MODES[mode].allows),
        allow_sandboxed=True,
        allow_checks=True,
        allow_unknown_programs=True,
    )
    of_call = ((DENY,),) if denial == "restrictions of the call" else ()
    for need in NEEDS:
        verdict = evaluate_permission(Permission("", (need,)), policy, origin=origin, restrictions=of_call)
        assert verdict.action == "deny", need
