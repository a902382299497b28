"""Data types and protocols shared by all packages; plain values, no I/O."""
