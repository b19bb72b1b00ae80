"""scree: local search for coding agents, over a repository's markdown and its code."""

__version__ = "0.1.0"
