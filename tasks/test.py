"""`./run test`: the whole fast suite; `--slow` adds the slow tier; anything else goes to pytest.

What fails beside others is run once more alone, and both are told: a machine that is too busy is no fault of the code.
"""

import json
import signal
import subprocess
import sys
from pathlib import Path

LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
TOO_MANY = 12  # that is a broken change, not a busy machine
FAILED = 1  # as pytest calls it
WORKERS = ["-n", "3", "--dist", "worksteal"]  # one more than cores: tests wait for processes a third of their time


def main(arguments: list[str]) -> int:
    """Run pytest, and the few that failed once more; its exit code."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` has it ignored, by what tests start too
    chosen = [argument for argument in arguments if argument != "--slow"]
    tier = [] if "--slow" in arguments else ["-m", "not slow"]
    workers = [] if any(argument.startswith("-n") for argument in chosen) else WORKERS
    code = _pytest(*tier, *workers, *chosen)
    if code != FAILED or arguments or len(json.loads(LAST_FAILED.read_bytes())) > TOO_MANY:
        return code
    sys.stdout.write("\n── once more, alone: what passes now is not steady and wants mending\n")
    sys.stdout.flush()
    return _pytest(*tier, "-n", "0", "--last-failed", "--last-failed-no-failures=none", "-v")


def _pytest(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
