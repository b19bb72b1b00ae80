"""Make, train and judge encoders; needs the `train` extra, and nothing that serves imports it."""
