"""Whether a check says anything about the edits: not where it found no tests, nor where the machine lacks something."""

import re

# As pytest, unittest, go, cargo, jest, vitest, mocha, maven and bun say it.
_NO_TESTS_FOUND = re.compile(
    r"\bno tests ran\b|^Ran 0 tests in|\[no test files\]|^running 0 tests$|\bNo tests? (?:files? )?found\b"
    r"|\bNo tests to run\b|^\s*0 passing\b|\bno tests to run\b|^Tests:\s+0 total",
    re.IGNORECASE | re.MULTILINE,
)
_TESTS_RAN_REGEX = (
    r"\b[1-9]\d* (?:passed|failed|passing|failing)\b|^Ran [1-9]\d* tests?\b|^running [1-9]\d* tests?$"
    r"|^ok\s+\S+\s+(?:\(cached\)|[\d.]+s)(?!.*no tests to run)|^--- FAIL\b|\bTests run: [1-9]"
)
_BUILD_FAILED_REGEX = (
    r"\b[1-9]\d* (?:errors?|skipped|xfailed|deselected)\b|^FAIL(?:ED)?\b|\b(?:build|setup) failed\b|^error(?:\[|:)"
)
_TESTS_RAN = re.compile(_TESTS_RAN_REGEX, re.IGNORECASE | re.MULTILINE)
# Tests that ran, and failures before any could.
_TESTS_OR_FAILURES = re.compile(f"{_TESTS_RAN_REGEX}|{_BUILD_FAILED_REGEX}", re.IGNORECASE | re.MULTILINE)
MAX_MESSAGE_LENGTH = 200
_CANNOT_RUN_CODES = (126, 127)
# The line in which a check says that a program, a module or the way to another machine is missing.
_MISSING_PROGRAM = re.compile(
    r"^.*(?:\bNo module named ['\"]?pytest\b|^make.*\*\*\* \[.*\] Error 12[67]\b).*$", re.MULTILINE
)
_UNREACHABLE_REGEX = (
    r"could not resolve|name resolution|unknown ?host|network is unreachable|no such host|dial tcp|EAI_AGAIN"
    r"|getaddrinfo|failed to download|could not transfer artifact"
)
_MISSING_TOOLCHAIN_REGEX = (
    r"rustup could not choose a version|toolchain '[^'\n]+' is not installed|linker `[^`\n]+` not found"
    r"|JAVA_HOME (?:environment variable )?is not (?:set|defined)|unable to locate a Java Runtime"
    r"|requires go >= \S+ \(running go"
)
# Only where no test ran: tests may be about these very words.
_MACHINE_PROBLEM = re.compile(
    rf"^.*(?:{_UNREACHABLE_REGEX}|{_MISSING_TOOLCHAIN_REGEX}).*$", re.IGNORECASE | re.MULTILINE
)


def missing_tool_message(output: str, exit_code: object) -> str:
    """What this machine lacks to run a check, in the check's words; nothing when it could run.

    Tests that ran and failed are the edits' business, whatever else they complain about.
    """
    if exit_code in _CANNOT_RUN_CODES:
        return output.strip().partition("\n")[0][:MAX_MESSAGE_LENGTH]
    found = _MISSING_PROGRAM.search(output) or (None if _TESTS_RAN.search(output) else _MACHINE_PROBLEM.search(output))
    return found[0].strip()[:MAX_MESSAGE_LENGTH] if found else ""


def found_no_tests(output: str) -> bool:
    """Whether a check only says that there was nothing to run."""
    return _NO_TESTS_FOUND.search(output) is not None and _TESTS_OR_FAILURES.search(output) is None
