"""What `./run test`, `./run check` and `./run bench` do."""
