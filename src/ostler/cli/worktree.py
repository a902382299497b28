"""`ostler worktree`: lists and removes the git worktrees of sessions."""

import sys

from ostler.cli.arguments import Parser, add_workspace


def main(arguments: list[str]) -> int:
    """List the worktrees, or remove one."""
    parser = Parser(
        "ostler worktree",
        description="List or remove the git worktrees that `ostler tui --worktree` made. A worktree with changes, with "
        "commits of its own or with an open session is never removed.",
    )
    parser.add_argument("action", choices=("list", "remove"), nargs="?", default="list")
    parser.add_argument("name", nargs="?", default="", help="the worktree to remove")
    add_workspace(parser)
    args = parser.parse_args(arguments)

    from ostler.app.worktrees import list_lines, remove

    if args.action == "remove":
        remove(args.cwd, args.name)
        sys.stdout.write(f"removed {args.name}\n")
        return 0
    sys.stdout.writelines(f"{line}\n" for line in list_lines(args.cwd))
    return 0
