"""`./run check`: run every static check and the acceptance tests; fail if one of them fails."""

import subprocess
import sys

from tasks.test import WORKERS

STEPS = (
    ("types", ["mypy"]),
    ("lint", ["ruff", "check", "--quiet"]),
    ("format", ["ruff", "format", "--check", "--quiet"]),
    ("phrases", ["tasks.phrases"]),
    ("layers", ["pytest", "-q", "tests/layers"]),
    ("acceptance", ["tasks.ledger", *WORKERS]),
)


def main() -> int:
    """Run all steps; return 0 if all passed, otherwise 1."""
    failed = []
    for name, command in STEPS:
        sys.stdout.write(f"── {name}\n")
        sys.stdout.flush()
        if subprocess.run([sys.executable, "-m", *command], check=False).returncode:
            failed.append(name)
    sys.stdout.write(f"failed: {', '.join(failed)}\n" if failed else "all checks passed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
