"""Benchmarks: ratios to minimal programs and to other tools, measured in the same run."""
