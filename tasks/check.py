"""`./run check`: types, lint, form, layers and the ledger; every one is run, and any failure fails it."""

import subprocess
import sys

STEPS = (
    ("types", ["mypy"]),
    ("lint", ["ruff", "check", "--quiet"]),
    ("form", ["ruff", "format", "--check", "--quiet"]),
    ("layers", ["pytest", "-q", "tests/layers"]),
    ("ledger", ["tasks.ledger"]),
)


def main() -> int:
    """0 when all passed."""
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
