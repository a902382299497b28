"""Files by which Mercurial, Jujutsu and other version control systems run programs."""

from ostler.text.lazy_regex import lazy_regex

_HG = ("hgrc", "hgrc-not-shared", "sharedpath")
OTHER_VCS_FILES: dict[str, tuple[str, ...]] = {
    ".hg": _HG,
    ".sl": ("config", *_HG),
    ".jj": ("repo/config.toml", "workspace-config.toml"),
    "_darcs": ("prefs/defaults",),
    ".pijul": ("config",),
    ".bzr": ("branch/branch.conf", "branch/location"),
}
# A file in place of a folder, which points to a folder with settings elsewhere.
POINTER_FILES = {".jj": ("repo",)}
SETTINGS_PATHS = tuple(f"{folder}/{name}" for folder, names in OTHER_VCS_FILES.items() for name in names)

# Where changes come from and go to; cloning a Mercurial repository writes these lines.
_SAFE_LINE = lazy_regex(rb"\s*(?:[#;].*|\[paths\]|default(?:-push)?\s*=\s*(?:https?|ssh|file)://[^\s:-][^\s]*|)")


def is_safe_config(data: bytes) -> bool:
    """Return whether the settings only contain where a repository was cloned from."""
    return all(_SAFE_LINE.fullmatch(line) for line in data.splitlines())
