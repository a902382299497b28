"""Detection of checks that found no tests or that the machine could not run."""

import pytest

from ostler.knowledge.check_results import found_no_tests, missing_tool_message

pytestmark = pytest.mark.req("EN-6")
NO_TESTS = {
    "pytest": "no tests ran in 0.00s\n\n[exit 5]",
    "unittest": "\n----------\nRan 0 tests in 0.000s\n\nOK",
    "unittest since 3.12": "Ran 0 tests in 0.000s\n\nNO TESTS RAN\n",
    "go": "?   \texample.com/a\t[no test files]\n",
    "go with an empty file": "ok  \texample.com/a\t0.002s [no tests to run]\n",
    "cargo": "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored\n",
    "jest": "No tests found, exiting with code 1\n",
    "vitest": "No test files found, exiting with code 1\n",
    "mocha": "\n  0 passing (1ms)\n",
    "maven": "[INFO] No tests to run.\n",
}
TESTS_OR_FAILURES = {
    "pytest": "1 passed in 0.01s",
    "pytest that cannot collect": "ERROR tests/test_a.py\n!!! Interrupted !!!\n1 error in 0.1s",
    "one of two suites is empty": "no tests ran in 0.00s\n3 passed in 0.1s",
    "unittest": "Ran 3 tests in 0.000s\n\nOK",
    "go": "?   \ta\t[no test files]\nok  \tb\t0.002s\n",
    "go, cached": "?   \ta\t[no test files]\nok  \tb\t(cached)\n",
    "go that does not build": "?   \ta\t[no test files]\nFAIL\tb [build failed]\n",
    "cargo": "running 2 tests\n\nrunning 0 tests\n",
    "a linter": "all fine\n",
    "nothing": "",
}


@pytest.mark.parametrize("case", NO_TESTS, ids=str)
def test_no_tests_found(case):
    assert found_no_tests(NO_TESTS[case])


@pytest.mark.parametrize("case", TESTS_OR_FAILURES, ids=str)
def test_tests_ran_or_failed(case):
    assert not found_no_tests(TESTS_OR_FAILURES[case])


MISSING_TOOL = {
    "no such program": ("sh: 1: cargo: not found\n[exit 127]", 127, "sh: 1: cargo: not found"),
    "no pytest": ("/usr/bin/python3: No module named pytest\n[exit 1]", 1, "No module named pytest"),
    "make without its tool": ("./t\nmake: ./t: No such file\nmake: *** [Makefile:2: test] Error 127\n", 2, "Error 127"),
    "go without a network": ("go: a: dial tcp: lookup proxy.golang.org: no such host\n", 1, "dial tcp"),
    "cargo without a network": ("error: failed to download `serde`\nCould not resolve host: x", 101, "download"),
    "rustup without a toolchain": (
        "error: rustup could not choose a version of cargo to run, because no default is configured.\n",
        1,
        "rustup",
    ),
    "another toolchain": ("error: toolchain '1.90-x86_64' is not installed\n", 1, "1.90"),
    "rust without a linker": ("error: linker `cc` not found\n  |\n", 101, "linker"),
    "maven without Java": ("The JAVA_HOME environment variable is not defined correctly,\n", 1, "JAVA_HOME"),
    "an older go": ("go: go.mod requires go >= 1.99 (running go 1.22.1; GOTOOLCHAIN=local)\n", 1, "1.99"),
    "maven without a network": ("[ERROR] Could not transfer artifact a:b: Unknown host repo\n", 1, "artifact"),
}
NOTHING_MISSING = {
    "a failure": ("1 failed in 0.1s", 1),
    "a test of the network that failed": ("E  socket.gaierror: name resolution\n1 failed, 3 passed in 1s", 1),
    "a module of the project that is gone": ("ModuleNotFoundError: No module named 'helpers'\n1 error in 0.1s", 2),
    "a test of toolchains that failed": ("toolchain 'x' is not installed\nrunning 3 tests\n1 failed", 101),
    "make that failed": ("make: *** [Makefile:2: test] Error 1\n", 2),
    "a compiler's complaint": ("main.go:3:1: syntax error\nFAIL\tx [build failed]", 1),
}


@pytest.mark.parametrize("case", MISSING_TOOL, ids=str)
def test_missing_tool(case):
    output, code, message = MISSING_TOOL[case]
    assert message in missing_tool_message(output, code)


@pytest.mark.parametrize("case", NOTHING_MISSING, ids=str)
def test_failures_of_the_edits_are_not_missing_tools(case):
    assert missing_tool_message(*NOTHING_MISSING[case]) == ""
