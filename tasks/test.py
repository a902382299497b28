"""`./run test`: the whole fast suite; `--slow` adds the slow tier; anything else goes to pytest."""

import os
import sys


def main(arguments: list[str]) -> None:
    """Become pytest."""
    chosen = [argument for argument in arguments if argument != "--slow"]
    tier = [] if "--slow" in arguments else ["-m", "not slow"]
    workers = [] if any(argument.startswith("-n") for argument in chosen) else ["-n", "2"]
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *tier, *workers, *chosen])


if __name__ == "__main__":
    main(sys.argv[1:])
