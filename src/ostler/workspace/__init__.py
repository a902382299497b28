"""The local workspace: confined paths, file encodings, atomic writes and checkpoints."""
