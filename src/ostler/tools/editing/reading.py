"""A patch of either form, read into file patches."""

from ostler.tools.editing.envelope import is_envelope, read_envelope
from ostler.tools.editing.patches import FilePatch, bad_patch
from ostler.tools.editing.unified import read_unified

MOST_CHARACTERS = 10_000_000
MOST_FILES = 1_000


def read_patch(patch: str) -> list[FilePatch]:
    """The file patches a text holds; a typed error that says how to mend it for any other text."""
    if not patch.strip():
        raise bad_patch("the patch is empty")
    if len(patch) > MOST_CHARACTERS:
        raise bad_patch(
            f"the patch has {len(patch):,} characters, and {MOST_CHARACTERS:,} can be read; give it in parts"
        )
    if all(line.endswith("\r") for line in patch.rstrip("\n").split("\n")):
        patch = patch.replace("\r\n", "\n").removesuffix("\r")  # it came by a way that ends all lines so
    patches = read_envelope(patch) if is_envelope(patch) else read_unified(patch)
    if len(patches) > MOST_FILES:
        raise bad_patch(f"it changes {len(patches):,} files, and {MOST_FILES:,} can be changed at once")
    return patches
