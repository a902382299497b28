"""Which files a command line would write to, and whether something is there already."""

import re
from collections.abc import Callable

from ostler.policy import danger
from ostler.policy.shell.args import Arg
from ostler.policy.shell.scope import Scope, home, join

_HARMLESS = re.compile(
    r"/dev/(?:null|stdout|stderr|stdin|tty|full|zero|u?random|ptmx|fd/\d+|pts/\d+|tcp/.*|udp/.*)|/proc/self/fd/\d+"
)
_BLOCK = re.compile(
    r"/dev/(?:[shv]d[a-z]|xvd[a-z]|nvme\d|mmcblk\d|disk|rdisk|mapper/|dm-\d|loop\d|md\d|md/|sr\d|nbd\d|zram\d|ram\d"
    r"|block/|mtd(?:block)?\d|bcache\d|vg[^/]*/|zvol/|fd\d)"
)
_DATED = re.compile(r"date(?: -u)? ['\"]?\+[^|]*%[sNSMHTFYjmd][^|]*")  # in a name, it makes a new one
_KERNEL = re.compile(r"/(?:proc|sys|dev)/(?!shm/|mqueue/)")


def is_block_device(path: str) -> bool:
    """Whether a path names a disk."""
    return bool(_BLOCK.match(path))


class Places:
    """The file system as the analysis sees it: what exists, plus the links this very line would make."""

    def __init__(self, exists: Callable[[str], bool]) -> None:
        self._exists = exists
        self._known: dict[str, bool] = {}
        self.links: dict[str, str] = {}
        self.made: set[str] = set()
        self.copies: dict[str, str] = {}  # the name of a copy or link this line makes, and the name of what it is
        self.writes: list[str] = []
        self.devices: list[str] = []

    def exists(self, path: str) -> bool:
        """Whether something is at a path."""
        path = self.behind(path)
        if path not in self._known:
            try:
                self._known[path] = bool(self._exists(path))
            except (OSError, ValueError):
                self._known[path] = True
        return self._known[path]

    def is_folder(self, path: str) -> bool:
        """Whether a folder is at a path."""
        return self.exists(path.rstrip("/") + "/.") or path == "/"

    def behind(self, path: str) -> str:
        """The path that a path means once the links made by this line are in place."""
        for _ in range(4):
            link = next((name for name in self.links if path == name or path.startswith(name + "/")), None)
            if link is None:
                break
            path = self.links[link] + path[len(link) :]
        return path

    def overwrites(self, arg: Arg, scope: Scope, *, appends: bool = False) -> str:
        """Why writing to a file must be asked for; empty when nothing is there to lose."""
        if arg.piped or arg.text in {"", "-"}:
            return ""
        if not arg.exact:
            return (
                ""
                if appends or _DATED.fullmatch(arg.origin)
                else "writes to a file whose name is known only when it runs"
            )
        paths = scope.places(arg.text)
        if not paths:
            return "" if appends else "writes to a file in a folder that is known only when it runs"
        reasons = [self._loss(path, scope_text=arg.text, appends=appends) for path in paths]
        return next(filter(None, reasons), "")

    def _loss(self, path: str, scope_text: str, appends: bool) -> str:
        path = self.behind(path)
        if _HARMLESS.fullmatch(path):
            return ""
        if is_block_device(path):
            self.devices.append(path)
            return f"writes to the device {path}"
        if path not in self.writes:
            self.writes.append(path)
        if _KERNEL.match(path):
            return f"writes to {path}"
        if danger.STARTUP_FILE.fullmatch(path.replace(home() + "/", "~/", 1)) or danger.STARTUP_FILE.fullmatch(path):
            return f"writes to {scope_text}, which others run or trust"
        if appends or not self.exists(path):
            return ""
        return f"overwrites {scope_text}"

    def inside(self, folder: Arg, names: list[Arg], scope: Scope) -> str:
        """Why putting files of these names into a folder must be asked for."""
        for name in names:
            base = name.text.rstrip("/").rpartition("/")[2]
            if not name.exact or base in {"", ".", ".."}:
                return f"may overwrite files in {folder.text}"
            if why := self.overwrites(
                Arg(join(folder.text or ".", base) if folder.text[:1] == "/" else f"{folder.text}/{base}"), scope
            ):
                return why
        return ""

    def any_folder(self, arg: Arg, scope: Scope) -> bool:
        """Whether an argument may name a folder that is there."""
        return any(self.is_folder(path) for path in scope.places(arg.text))

    def any_exists(self, arg: Arg, scope: Scope) -> bool:
        """Whether an argument may name something that is there; what is not known counts as there."""
        if not arg.exact:
            return True
        paths = scope.places(arg.text)
        return not paths or any(self.exists(path) for path in paths)
