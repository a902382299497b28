"""`./run bench`: run all benchmarks and print a Markdown report; `--keep` also writes bench/RESULTS.md.

`--large` adds sizes that take minutes, `--quick` repeats less, `--undo` measures only undo in growing workspaces,
`--mcp` only MCP servers, and `--server` only the server under load.
`./run bench jobs` runs small jobs with a small model instead, see bench/jobs.
"""

import sys

if __name__ == "__main__":
    if sys.argv[1:2] == ["jobs"]:
        from bench.jobs.run import main

        sys.exit(main(sys.argv[2:]))
    from bench.report import main as report

    sys.exit(report(sys.argv[1:]))
