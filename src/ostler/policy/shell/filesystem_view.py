"""The file system as the analysis sees it: existing paths, and the links and files this line would create."""

import re
from collections.abc import Callable

from ostler.policy import danger_tables
from ostler.policy.shell.expanded_words import ExpandedWord
from ostler.policy.shell.shell_state import ShellState, home_folder, join_path

_HARMLESS_DEVICE = re.compile(
    r"/dev/(?:null|stdout|stderr|stdin|tty|full|zero|u?random|ptmx|fd/\d+|pts/\d+|tcp/.*|udp/.*)|/proc/self/fd/\d+"
)
_BLOCK_DEVICE = re.compile(
    r"/dev/(?:[shv]d[a-z]|xvd[a-z]|nvme\d|mmcblk\d|disk|rdisk|mapper/|dm-\d|loop\d|md\d|md/|sr\d|nbd\d|zram\d|ram\d"
    r"|block/|mtd(?:block)?\d|bcache\d|vg[^/]*/|zvol/|fd\d)"
)
_DATE_COMMAND = re.compile(r"date(?: -u)? ['\"]?\+[^|]*%[sNSMHTFYjmd][^|]*")  # in a file name, it makes the name unique
_KERNEL_PATH = re.compile(r"/(?:proc|sys|dev)/(?!shm/|mqueue/)")


def is_block_device(path: str) -> bool:
    """Return whether a path names a disk."""
    return bool(_BLOCK_DEVICE.match(path))


def is_harmless_device(path: str) -> bool:
    """Return whether writing to a path changes no file."""
    return bool(_HARMLESS_DEVICE.fullmatch(path))


class FileSystemView:
    """The existing paths, and what the command line would write, link, copy and create."""

    def __init__(self, exists: Callable[[str], bool]) -> None:
        self._exists = exists
        self._exists_cache: dict[str, bool] = {}
        self.links: dict[str, str] = {}
        self.created_folders: set[str] = set()
        self.copies: dict[str, str] = {}  # names of copies and links that this line creates, with the original names
        self.written_paths: list[str] = []
        self.written_devices: list[str] = []

    def exists(self, path: str) -> bool:
        """Return whether a path exists. If that cannot be checked, it is assumed to exist."""
        path = self.resolve_links(path)
        if path not in self._exists_cache:
            try:
                self._exists_cache[path] = bool(self._exists(path))
            except (OSError, ValueError):
                self._exists_cache[path] = True
        return self._exists_cache[path]

    def is_folder(self, path: str) -> bool:
        """Return whether a path is an existing folder."""
        return self.exists(path.rstrip("/") + "/.") or path == "/"

    def resolve_links(self, path: str) -> str:
        """Resolve the links that this line would create."""
        for _ in range(4):
            link = next((name for name in self.links if path == name or path.startswith(name + "/")), None)
            if link is None:
                break
            path = self.links[link] + path[len(link) :]
        return path

    def overwrite_reason(self, arg: ExpandedWord, shell: ShellState, *, appends: bool = False) -> str:
        """Return why writing to a file needs approval, or an empty string. Records the file as written."""
        if arg.piped or arg.text in {"", "-"}:
            return ""
        if not arg.exact:
            return (
                ""
                if appends or _DATE_COMMAND.fullmatch(arg.origin)
                else "writes to a file whose name is known only at run time"
            )
        paths = shell.resolve_paths(arg.text)
        if not paths:
            return "" if appends else "writes to a file in a folder that is known only at run time"
        reasons = [self._path_overwrite_reason(path, display_path=arg.text, appends=appends) for path in paths]
        return next(filter(None, reasons), "")

    def _path_overwrite_reason(self, path: str, display_path: str, appends: bool) -> str:
        path = self.resolve_links(path)
        if _HARMLESS_DEVICE.fullmatch(path):
            return ""
        if is_block_device(path):
            self.written_devices.append(path)
            return f"writes to the device {path}"
        if path not in self.written_paths:
            self.written_paths.append(path)
        if _KERNEL_PATH.match(path):
            return f"writes to {path}"
        if danger_tables.STARTUP_FILE.fullmatch(
            path.replace(home_folder() + "/", "~/", 1)
        ) or danger_tables.STARTUP_FILE.fullmatch(path):
            return f"writes to {display_path}, which other programs run or trust"
        if appends or not self.exists(path):
            return ""
        return f"overwrites {display_path}"

    def folder_overwrite_reason(self, folder: ExpandedWord, names: list[ExpandedWord], shell: ShellState) -> str:
        """Return why writing files with these names to a folder needs approval, or an empty string."""
        for name in names:
            base = name.text.rstrip("/").rpartition("/")[2]
            if not name.exact or base in {"", ".", ".."}:
                return f"may overwrite files in {folder.text}"
            if reason := self.overwrite_reason(
                ExpandedWord(
                    join_path(folder.text or ".", base) if folder.text[:1] == "/" else f"{folder.text}/{base}"
                ),
                shell,
            ):
                return reason
        return ""

    def may_be_folder(self, arg: ExpandedWord, shell: ShellState) -> bool:
        """Return whether an argument may name an existing folder."""
        return any(self.is_folder(path) for path in shell.resolve_paths(arg.text))

    def may_exist(self, arg: ExpandedWord, shell: ShellState) -> bool:
        """Return whether an argument may name an existing path; unknown paths are assumed to exist."""
        if not arg.exact:
            return True
        paths = shell.resolve_paths(arg.text)
        return not paths or any(self.exists(path) for path in paths)
