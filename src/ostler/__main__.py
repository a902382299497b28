"""Entry point of `ostler` and `python -m ostler`; answers `--version` without importing anything else."""

import sys


def main() -> int:
    """Print the version, or dispatch to a command. Return the exit status."""
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
    """Replace closed standard streams with the null device, so that writing to them does not fail."""
    import os

    null = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    sys.stdout, sys.stderr = sys.stdout or null, sys.stderr or null


if __name__ == "__main__":
    sys.exit(main())
