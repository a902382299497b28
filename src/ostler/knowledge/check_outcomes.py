"""Whether a check that ran says anything: one that found no tests does not, whatever its exit code."""

import re

# As pytest, unittest, go, cargo, jest, vitest, mocha, maven and bun say it.
_NONE = re.compile(
    r"\bno tests ran\b|^Ran 0 tests in|\[no test files\]|^running 0 tests$|\bNo tests? (?:files? )?found\b"
    r"|\bNo tests to run\b|^\s*0 passing\b|\bno tests to run\b|^Tests:\s+0 total",
    re.IGNORECASE | re.MULTILINE,
)
# Tests that ran, and failures before any could.
_SOME = re.compile(
    r"\b[1-9]\d* (?:passed|failed|passing|failing|errors?|skipped|xfailed|deselected)\b|^Ran [1-9]\d* tests?\b"
    r"|^running [1-9]\d* tests?$|^ok\s+\S+\s+(?:\(cached\)|[\d.]+s)(?!.*no tests to run)|^(?:--- )?FAIL\b|^FAILED\b"
    r"|\bTests run: [1-9]|\b(?:build|setup) failed\b|^error(?:\[|:)",
    re.IGNORECASE | re.MULTILINE,
)


def found_no_tests(output: str) -> bool:
    """Whether a check only says that there was nothing to run."""
    return _NONE.search(output) is not None and _SOME.search(output) is None
