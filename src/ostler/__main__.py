"""The front door: `ostler` and `python -m ostler`. The version is told before anything else is imported."""

import sys


def main() -> int:
    """Answer `--version` at once; hand everything else to the command table."""
    arguments = sys.argv[1:]
    if sys.stdout is None or sys.stderr is None:
        _open_missing_streams()
    if arguments[:1] in (["--version"], ["-V"]):
        from ostler import __version__

        sys.stdout.write(f"ostler {__version__}\n")
        return 0
    try:
        from ostler.cli.main import dispatch

        return dispatch(arguments)
    except KeyboardInterrupt:
        return 130


def _open_missing_streams() -> None:
    """Started with a closed output: what is said goes nowhere."""
    import os

    nowhere = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere


if __name__ == "__main__":
    sys.exit(main())
