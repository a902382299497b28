"""Benchmarks: ratios to baselines and other programs in the same run."""
