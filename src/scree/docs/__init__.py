"""scree: always-current search by meaning over a repository's markdown."""
