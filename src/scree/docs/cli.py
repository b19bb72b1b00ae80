"""The `scree` and `scree-mcp` programs: whether this is one more session, which stays small, or another command."""

from __future__ import annotations

import sys


def main() -> int:
    """Run what the command line asks for; returns the exit status."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["serve"]:
        from scree.docs.relay import serve

        return serve(arguments)
    from scree.docs.commands import run

    return run(arguments)


def serve_main() -> int:
    """Run `scree serve`, as `scree-mcp`."""
    sys.argv.insert(1, "serve")
    return main()


if __name__ == "__main__":
    sys.exit(main())
