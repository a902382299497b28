"""`./run test`: run the fast test suite; other arguments are passed to pytest.

`--slow` adds the slow tests and gives property tests their full length; `--sample` runs only one case of each slow
test. `--near` runs only the tests near the uncommitted changes, `--near --base REV` those near the changes of this
branch since REV. `./run check` runs the checks of the code's own form and the acceptance tests.

If a few tests fail in a full run, they are run again one by one, because tests can fail on a busy machine.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
ACCEPTANCE = "tests/acceptance"
COMPILED = Path("tests/__pycache__")
MAX_RERUNS = 12  # more failures mean a broken change, not a busy machine
MARKS = {"fast": "not slow", "sample": "slow", "slow": ""}  # tier: the tests that it selects
FAILED = 1  # exit status of pytest
WORKERS = ["-n", "6", "--dist", "worksteal"]  # more than the cores: tests wait for processes most of their time


def main(arguments: list[str]) -> int:
    """Run pytest, then the failed tests once more if there are few. Return pytest's exit status."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` ignores it, also in child processes
    tier = next((tier for tier in MARKS if f"--{tier}" in arguments), "fast")
    pytest_arguments = _select_near([argument for argument in arguments if argument != f"--{tier}"])
    if pytest_arguments is None:
        return 0
    selection = _select_tests(pytest_arguments, tier)
    workers = [] if any(argument.startswith("-n") for argument in pytest_arguments) else WORKERS
    code = _pytest(tier, *selection, *workers, *pytest_arguments)
    if code != FAILED or pytest_arguments or len(json.loads(LAST_FAILED.read_bytes())) > MAX_RERUNS:
        return code
    sys.stdout.write(
        "\n── running the failed tests again, one by one; a test that passes now is not reliable and should be fixed\n"
    )
    sys.stdout.flush()
    return _pytest(tier, *selection, "-n", "0", "--last-failed", "--last-failed-no-failures=none", "-v")


def _select_tests(arguments: list[str], tier: str) -> list[str]:
    """Return the options that select the tests of a tier; unless tests are named, without those of `./run check`."""
    names_tests = any(Path(argument.partition("::")[0]).exists() for argument in arguments)
    marks = [mark for mark in (MARKS[tier], "" if names_tests else "not form") if mark]
    options = ["-m", " and ".join(marks)] if marks else []
    return options if names_tests else [*options, "--ignore", ACCEPTANCE]


def _select_near(arguments: list[str]) -> list[str] | None:
    """Replace `--near` and `--base REV` by the tests near the change. Return None if there are none."""
    if "--near" not in arguments:
        return arguments
    from tasks.near import changed_files, near_tests

    rest = [argument for argument in arguments if argument != "--near"]
    base = "HEAD"
    if "--base" in rest:
        place = rest.index("--base")
        base = "".join(rest[place + 1 : place + 2])
        del rest[place : place + 2]
    changed = changed_files(base)
    found = near_tests(changed)
    text = "all tests" if found is None else ", ".join(found) or "no tests"
    sys.stdout.write(f"near {len(changed)} changed files: {text}\n")
    sys.stdout.flush()
    return rest if found is None else [*rest, *found] if found else None


def _pytest(tier: str, *arguments: str) -> int:
    environment = {**os.environ, "OSTLER_TESTS_TIER": tier}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiling the tests in every process takes a third of a run
    if not any(COMPILED.glob("conftest.*.pyc")):
        _compile_tests(environment)
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], env=environment, check=False).returncode


def _compile_tests(environment: dict[str, str]) -> None:
    """Compile the tests of a fresh checkout in two processes, instead of all of them in every worker."""
    folders = [str(folder) for folder in sorted(COMPILED.parent.iterdir()) if folder.is_dir()]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q"]
    halves = [half for half in (folders[::2], folders[1::2]) if half]
    collecting = [subprocess.Popen([*command, *half], env=environment, stdout=subprocess.DEVNULL) for half in halves]
    for process in collecting:
        process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
