"""micro-scout: verified source snippets from a snapshot of a repository."""
