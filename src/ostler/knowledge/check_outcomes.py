"""Whether a check says anything about the edits: not where it found no tests, nor where the machine lacks something."""

import re

# As pytest, unittest, go, cargo, jest, vitest, mocha, maven and bun say it.
_NONE = re.compile(
    r"\bno tests ran\b|^Ran 0 tests in|\[no test files\]|^running 0 tests$|\bNo tests? (?:files? )?found\b"
    r"|\bNo tests to run\b|^\s*0 passing\b|\bno tests to run\b|^Tests:\s+0 total",
    re.IGNORECASE | re.MULTILINE,
)
_TESTS = (
    r"\b[1-9]\d* (?:passed|failed|passing|failing)\b|^Ran [1-9]\d* tests?\b|^running [1-9]\d* tests?$"
    r"|^ok\s+\S+\s+(?:\(cached\)|[\d.]+s)(?!.*no tests to run)|^--- FAIL\b|\bTests run: [1-9]"
)
_BROKEN = (
    r"\b[1-9]\d* (?:errors?|skipped|xfailed|deselected)\b|^FAIL(?:ED)?\b|\b(?:build|setup) failed\b|^error(?:\[|:)"
)
_RAN = re.compile(_TESTS, re.IGNORECASE | re.MULTILINE)
# Tests that ran, and failures before any could.
_SOME = re.compile(f"{_TESTS}|{_BROKEN}", re.IGNORECASE | re.MULTILINE)
LONGEST = 200
_CANNOT_RUN = (126, 127)
# The line in which a check says that a program, a module or the way to another machine is missing.
_MISSING = re.compile(r"^.*(?:\bNo module named ['\"]?pytest\b|^make.*\*\*\* \[.*\] Error 12[67]\b).*$", re.MULTILINE)
_UNREACHABLE = (
    r"could not resolve|name resolution|unknown ?host|network is unreachable|no such host|dial tcp|EAI_AGAIN"
    r"|getaddrinfo|failed to download|could not transfer artifact"
)
_UNFIT = (
    r"rustup could not choose a version|toolchain '[^'\n]+' is not installed|linker `[^`\n]+` not found"
    r"|JAVA_HOME (?:environment variable )?is not (?:set|defined)|unable to locate a Java Runtime"
    r"|requires go >= \S+ \(running go"
)
# Only where no test ran: tests may be about these very words.
_NOT_HERE = re.compile(rf"^.*(?:{_UNREACHABLE}|{_UNFIT}).*$", re.IGNORECASE | re.MULTILINE)


def lacking(output: str, exit_code: object) -> str:
    """What this machine lacks to run a check, in the check's words; nothing when it could run.

    Tests that ran and failed are the edits' business, whatever else they complain about.
    """
    if exit_code in _CANNOT_RUN:
        return output.strip().partition("\n")[0][:LONGEST]
    found = _MISSING.search(output) or (None if _RAN.search(output) else _NOT_HERE.search(output))
    return found[0].strip()[:LONGEST] if found else ""


def found_no_tests(output: str) -> bool:
    """Whether a check only says that there was nothing to run."""
    return _NONE.search(output) is not None and _SOME.search(output) is None
