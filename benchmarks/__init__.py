"""Quality and speed of scree, measured beside named baselines in the same run."""
