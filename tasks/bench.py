"""`./run bench`: run all benchmarks and print a Markdown report; `--keep` also writes bench/RESULTS.md.

`--large` adds sizes that take minutes, `--quick` repeats less, and `--undo` measures only undo in growing workspaces.
"""

import sys

from bench.report import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
