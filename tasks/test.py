"""`./run test`: run the fast test suite; `--slow` adds the slow tests; other arguments are passed to pytest.

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
    pytest_arguments = [argument for argument in arguments if argument != "--slow"]
    selection = [] if "--slow" in arguments else ["-m", "not slow"]
    workers = [] if any(argument.startswith("-n") for argument in pytest_arguments) else WORKERS
    code = _pytest(*selection, *workers, *pytest_arguments)
    if code != FAILED or arguments or len(json.loads(LAST_FAILED.read_bytes())) > MAX_RERUNS:
        return code
    sys.stdout.write(
        "\n── running the failed tests again, one by one; a test that passes now is not reliable and should be fixed\n"
    )
    sys.stdout.flush()
    return _pytest(*selection, "-n", "0", "--last-failed", "--last-failed-no-failures=none", "-v")


def _pytest(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
