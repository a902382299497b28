"""Checks that found nothing to run are told apart from those that passed or failed."""

import pytest

from ostler.knowledge.check_outcomes import found_no_tests

pytestmark = pytest.mark.req("EN-6")
NOTHING = {
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
SOMETHING = {
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


@pytest.mark.parametrize("case", NOTHING, ids=str)
def test_nothing_to_run(case):
    assert found_no_tests(NOTHING[case])


@pytest.mark.parametrize("case", SOMETHING, ids=str)
def test_something_ran_or_failed(case):
    assert not found_no_tests(SOMETHING[case])
