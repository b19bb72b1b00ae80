"""What both halves of scree use: files, ignore rules, terms, encoders, ranking, databases."""
