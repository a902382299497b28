"""Speed, measured: one command, ratios against floors and peers of the same run."""
