"""`./run test`: run the fast test suite; other arguments are passed to pytest.

`--slow` adds the slow tests. `--near` runs only the tests near the uncommitted changes, `--near --base REV` those near
the changes of this branch since REV. Checks of the code's own form belong to `./run check`.

If a few tests fail in a full run, they are run again one by one, because tests can fail on a busy machine.
"""

import json
import signal
import subprocess
import sys
from pathlib import Path

LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
MAX_RERUNS = 12  # more failures mean a broken change, not a busy machine
FAILED = 1  # exit status of pytest
WORKERS = ["-n", "3", "--dist", "worksteal"]  # one more than the cores: tests wait for processes a third of their time


def main(arguments: list[str]) -> int:
    """Run pytest, then the failed tests once more if there are few. Return pytest's exit status."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` ignores it, also in child processes
    pytest_arguments = _select_near([argument for argument in arguments if argument != "--slow"])
    if pytest_arguments is None:
        return 0
    selection = _select_marks(pytest_arguments, slow="--slow" in arguments)
    workers = [] if any(argument.startswith("-n") for argument in pytest_arguments) else WORKERS
    code = _pytest(*selection, *workers, *pytest_arguments)
    if code != FAILED or arguments or len(json.loads(LAST_FAILED.read_bytes())) > MAX_RERUNS:
        return code
    sys.stdout.write(
        "\n── running the failed tests again, one by one; a test that passes now is not reliable and should be fixed\n"
    )
    sys.stdout.flush()
    return _pytest(*selection, "-n", "0", "--last-failed", "--last-failed-no-failures=none", "-v")


def _select_marks(arguments: list[str], *, slow: bool) -> list[str]:
    """Return the option that leaves out slow tests and, unless folders or files are named, checks of form."""
    names_tests = any(Path(argument.partition("::")[0]).exists() for argument in arguments)
    left_out = [*([] if slow else ["not slow"]), *([] if names_tests else ["not form"])]
    return ["-m", " and ".join(left_out)] if left_out else []


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


def _pytest(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
