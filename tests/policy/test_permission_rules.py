"""Whether a list of rules restricts some subject of a key."""

import pytest

from ostler.core.permission import Rule
from ostler.policy.permission_rules import restricts_key


@pytest.mark.req("PM-1")
@pytest.mark.parametrize(
    ("rules", "restricts"),
    [
        ((), True),
        ((Rule("*", "*", "ask"), Rule("read", "*", "allow")), False),
        ((Rule("read", "*", "allow"), Rule("read", "*.env", "deny")), True),
        ((Rule("read", "*.env", "deny"), Rule("read", "src/*", "allow")), True),
        ((Rule("read", "*.env", "deny"), Rule("*", "*", "allow")), False),
        ((Rule("read", "*", "allow"), Rule("bash", "*", "deny")), False),
    ],
)
def test_rules_that_restrict_some_subject_of_a_key(rules, restricts):
    assert restricts_key(rules, "read", default=True) == restricts
