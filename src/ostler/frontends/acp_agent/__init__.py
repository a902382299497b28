"""ACP agent frontend: serves an editor on stdin and stdout."""
