"""`ostler model`: installs, lists, serves and removes the embedded models."""

import os
import sys
from functools import partial
from pathlib import Path

from ostler.cli.arguments import Parser
from ostler.models.embedded import default_model
from ostler.models.embedded.weights_store import INSTALL_HINT, WeightsStore, check_gguf

CAUTION = (
    "It is small: use it for a first try, one-file changes or offline machines. It does not replace a large model."
)


DEFAULT_PORT = 8080  # where Ostler looks for a llama.cpp server


def main(arguments: list[str]) -> int:
    """Parse the arguments and run a subcommand."""
    parser = Parser(
        "ostler model",
        description="Install, list, serve or remove small models that Ostler runs itself.",
        epilog=f"The model is {default_model.TITLE}, {_format_size(default_model.SIZE)}. {CAUTION}",
    )
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="install | list | serve [NAME] | remove NAME", parser_class=Parser
    )
    install = actions.add_parser("install", help="download the model and its runtime library")
    install.add_argument("--file", metavar="X.gguf", type=Path, help="use this model file instead, without copying it")
    actions.add_parser("list", help="list the installed models")
    remove = actions.add_parser("remove", help="delete a downloaded model, or unregister a file added with --file")
    remove.add_argument("name", metavar="NAME", help="a name from `ostler model list`")
    serve = actions.add_parser("serve", help="keep a model loaded, for Ostler and other programs on this machine")
    serve.add_argument("name", metavar="NAME", nargs="?", default="", help="a name from `ostler model list`")
    serve.add_argument(
        "--port",
        type=partial(_parse_number, 0, 65535),
        default=DEFAULT_PORT,
        help=f"default {DEFAULT_PORT}; 0 for any free one",
    )
    serve.add_argument(
        "--threads", type=partial(_parse_number, 1, 1024), default=0, help="default: the cores that are idle now"
    )
    args = parser.parse_args(arguments)
    store = WeightsStore(os.environ)
    if args.action == "install":
        return _install(store, args.file)
    if args.action == "serve":
        return _serve(args.name, args.port, args.threads)
    return _list(store) if args.action == "list" else _remove(store, args.name)


def _parse_number(low: int, high: int, text: str) -> int:
    from argparse import ArgumentTypeError

    if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
        raise ArgumentTypeError(f"must be a number from {low} to {high}")
    return int(text)


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
            f"Downloading {what}: {_format_size(fetch)}, using {_format_size(disk)} of disk space in {store.folder}.\n"
        )
        sys.stderr.write("Press Ctrl-C to stop; run the command again to continue.\n")
    try:
        model = asyncio.run(installer.install(file))
    finally:
        bar.end()
    sys.stdout.write(f"{model.name} is installed. {CAUTION}\n")
    sys.stdout.write('Try it: ostler run --model embedded "what does this project do?"\n')
    return 0


def _serve(name: str, port: int, threads: int) -> int:
    """Keep a model loaded and serve it until the process is stopped."""
    import asyncio

    try:
        asyncio.run(_serve_model(name, port, threads))
    except KeyboardInterrupt:
        return 0
    return 1


async def _serve_model(name: str, port: int, threads: int) -> None:
    from ostler.core.errors import BackendError
    from ostler.models.embedded.choice import NAME, find_installed
    from ostler.models.embedded.server import start_server
    from ostler.models.embedded.threads import free_threads

    weights, runtime = find_installed(os.environ, f"{NAME}/{name}" if name else NAME)

    async def thread_count() -> int:
        return threads or await free_threads()

    sys.stderr.write(f"loading {weights.name} …\n")
    server = await start_server(
        weights.path.resolve(), runtime, thread_count, name=weights.name, port=port, has_key=False
    )
    try:
        sys.stdout.write(f"{weights.name} is served at {server.base_url} (OpenAI chat API). Press Ctrl-C to stop.\n")
        sys.stdout.flush()
        await server.program.wait()
    finally:
        await server.stop()
    raise BackendError("the server process of the embedded model ended", code="embedded")


def _list(store: WeightsStore) -> int:
    models = store.list_installed()
    for index, model in enumerate(models):
        size = "file missing" if model.size is None else _format_size(model.size)
        target = f"  {model.path.readlink()}" if model.is_linked else ""
        default = "  (used by `--model embedded`)" if index == 0 else ""
        sys.stdout.write(f"{model.name}  {size}{target}{default}\n")
    if not models:
        sys.stdout.write(f"no embedded model is installed; {INSTALL_HINT}\n")
    return 0


def _remove(store: WeightsStore, name: str) -> int:
    removed = store.remove(name)
    sys.stdout.write(f"removed {removed.name}\n")
    return 0


class _ProgressBar:
    """Progress of the download: a bar in a terminal, else a line for every ten percent."""

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
