"""Parses a patch of either supported format."""

from ostler.tools.editing.begin_patch import is_begin_patch, parse_begin_patch
from ostler.tools.editing.patch_types import FilePatch, bad_patch_error
from ostler.tools.editing.unified_diff import parse_unified

MAX_CHARACTERS = 10_000_000
MAX_FILES = 1_000


def parse_patch(patch: str) -> list[FilePatch]:
    """Parse the file patches in a text. Raises `ToolError` that says how to fix the patch."""
    if not patch.strip():
        raise bad_patch_error("the patch is empty")
    if len(patch) > MAX_CHARACTERS:
        raise bad_patch_error(f"the patch has {len(patch):,} characters; the maximum is {MAX_CHARACTERS:,}; split it")
    if all(line.endswith("\r") for line in patch.rstrip("\n").split("\n")):
        patch = patch.replace("\r\n", "\n").removesuffix("\r")  # the transport added the CRs
    patches = parse_begin_patch(patch) if is_begin_patch(patch) else parse_unified(patch)
    if len(patches) > MAX_FILES:
        raise bad_patch_error(f"it changes {len(patches):,} files; the maximum is {MAX_FILES:,}")
    return patches
