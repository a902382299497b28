"""`ostler model`: install, list and remove the small models that Ostler runs by itself."""

import os
import sys
from pathlib import Path

from ostler.cli.arguments import Parser
from ostler.models.embedded import default_model
from ostler.models.embedded.weights_store import INSTALL_HINT, WeightsStore, check_gguf

CAUTION = (
    "It is small: good for a try, a one-file change, a machine without network. It is no substitute for a large model."
)


def main(arguments: list[str]) -> int:
    """Parse and do."""
    parser = Parser(
        "ostler model",
        description="Install a small model that runs in a process of Ostler's own, list what is installed, remove it.",
        epilog=f"The model is {default_model.TITLE}, {_format_size(default_model.SIZE)}. {CAUTION}",
    )
    does = parser.add_subparsers(
        dest="does", required=True, metavar="install | list | remove NAME", parser_class=Parser
    )
    install = does.add_parser("install", help="fetch the model and the library that computes it")
    install.add_argument("--file", metavar="X.gguf", type=Path, help="take this model instead, where it lies")
    does.add_parser("list", help="what is installed")
    remove = does.add_parser("remove", help="delete what was fetched, or forget a file of yours")
    remove.add_argument("name", metavar="NAME")
    given = parser.parse_args(arguments)
    store = WeightsStore(os.environ)
    if given.does == "install":
        return _install(store, given.file)
    return _list(store) if given.does == "list" else _remove(store, given.name)


def _install(store: WeightsStore, file: Path | None) -> int:
    import asyncio

    from ostler.models.embedded.install import Installer

    if file is not None:
        check_gguf(file)
    bar = _ProgressBar()
    installer = Installer(store, bar.show)
    fetch, disk = installer.missing_bytes(file)
    if fetch:
        what = (
            "the library xllamacpp" if file or installer.target.exists() else f"{default_model.TITLE} and its library"
        )
        sys.stderr.write(
            f"Fetching {what}: {_format_size(fetch)} to download, {_format_size(disk)} of disk in {store.folder}.\n"
        )
        sys.stderr.write("Ctrl-C stops it; the same command goes on from there.\n")
    try:
        found = asyncio.run(installer.install(file))
    finally:
        bar.end()
    sys.stdout.write(f"{found.name} is installed. {CAUTION}\n")
    sys.stdout.write('Try it: ostler run --model embedded "what is in this folder?"\n')
    return 0


def _list(store: WeightsStore) -> int:
    there = store.list_installed()
    for number, one in enumerate(there):
        size = "its file is gone" if one.size is None else _format_size(one.size)
        where = f"  {one.path.readlink()}" if one.is_linked else ""
        sys.stdout.write(f"{one.name}  {size}{where}{'  (what `--model embedded` takes)' if number == 0 else ''}\n")
    if not there:
        sys.stdout.write(f"no embedded model is installed; {INSTALL_HINT}\n")
    return 0


def _remove(store: WeightsStore, name: str) -> int:
    gone = store.remove(name)
    sys.stdout.write(f"{gone.name} is no longer installed\n")
    return 0


class _ProgressBar:
    """How far it is: a line that is drawn anew in a terminal, one line for each tenth elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._done = 0
        self._tenths = -1

    def show(self, done: int, total: int) -> None:
        done = self._done = max(done, self._done)
        tenths = done * 10 // total
        if self._terminal:
            filled = done * 30 // total
            bar = "█" * filled + "░" * (30 - filled)
            sys.stderr.write(f"\r  {bar} {done * 100 // total:3} %  {_format_size(done)} of {_format_size(total)} ")
        elif tenths > self._tenths:
            sys.stderr.write(f"  {tenths * 10} %\n")
        sys.stderr.flush()
        self._tenths = tenths

    def end(self) -> None:
        if self._terminal and self._tenths >= 0:
            sys.stderr.write("\n")


def _format_size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
