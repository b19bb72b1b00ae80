"""The weights that the package carries, each with its card."""
