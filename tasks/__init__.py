"""The tasks behind `./run test`, `./run check` and `./run bench`, and generators for the docs."""
