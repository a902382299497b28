"""The XNL scanner on a long answer of 10 MB, in large and in tiny pieces."""

import time
from collections.abc import Iterator

MEGABYTES = 10
BUDGET_S = 1.0
_PROSE = "The file has a function that adds! It is called in three places, and tested in none.\n"
_CALL = '!unquote_start\n<tool_call id="c" lang="javascript" #>SysBuiltIn.read({path: "a.py"})</#>\n!unquote_end\n'


def rows(repeats: int) -> Iterator[tuple[str, str, str, str]]:
    """Yield one row for each size of the pieces."""
    text = (_PROSE * 40 + _CALL) * (MEGABYTES * 1_000_000 // (40 * len(_PROSE) + len(_CALL)) + 1)
    for size in (65_536, 64):
        seconds = min(_scan_seconds(text, size) for _ in range(min(3, repeats)))
        verdict = "within" if seconds <= BUDGET_S else "**over**"
        yield (
            f"{MEGABYTES} MB through the XNL scanner, {size:,} characters at a time",
            f"{seconds * 1000:.0f} ms CPU",
            f"{MEGABYTES / seconds:.0f} MB a second",
            f"{verdict} {BUDGET_S:g} s",
        )


def _scan_seconds(text: str, size: int) -> float:
    from ostler.xnl.scanner import MarkedBlock, XnlScanner

    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    started = time.process_time()
    scanner = XnlScanner()
    blocks = sum(isinstance(piece, MarkedBlock) for part in pieces for piece in scanner.feed(part))
    scanner.finish()
    spent = time.process_time() - started
    assert blocks == text.count(_CALL), f"found {blocks} blocks"
    return spent


if __name__ == "__main__":
    for row in rows(3):
        print(" | ".join(row))
