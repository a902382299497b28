"""Detects from a check's output that it found no tests or that the machine lacks a tool."""

import re

# Messages of pytest, unittest, go, cargo, jest, vitest, mocha, maven and bun.
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
# Tests that ran, and failures before any test could run.
_TESTS_OR_FAILURES = re.compile(f"{_TESTS_RAN_REGEX}|{_BUILD_FAILED_REGEX}", re.IGNORECASE | re.MULTILINE)
MAX_MESSAGE_LENGTH = 200
_CANNOT_RUN_CODES = (126, 127)
# Lines that report a missing program or module.
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
# Only used if no test ran: the output of tests may contain these words.
_MACHINE_PROBLEM = re.compile(
    rf"^.*(?:{_UNREACHABLE_REGEX}|{_MISSING_TOOLCHAIN_REGEX}).*$", re.IGNORECASE | re.MULTILINE
)


def missing_tool_message(output: str, exit_code: object) -> str:
    """Return the line of the output that names what the machine lacks, or an empty string if the check could run.

    Tests that ran and failed are attributed to the edits, even if they also report a network problem.
    """
    if exit_code in _CANNOT_RUN_CODES:
        return output.strip().partition("\n")[0][:MAX_MESSAGE_LENGTH]
    found = _MISSING_PROGRAM.search(output) or (None if _TESTS_RAN.search(output) else _MACHINE_PROBLEM.search(output))
    return found[0].strip()[:MAX_MESSAGE_LENGTH] if found else ""


def found_no_tests(output: str) -> bool:
    """Return whether a check only reports that there are no tests."""
    return _NO_TESTS_FOUND.search(output) is not None and _TESTS_OR_FAILURES.search(output) is None
