"""The typed config: JSONC with positions, layers and their origins, trust on disk, and which model is meant."""
