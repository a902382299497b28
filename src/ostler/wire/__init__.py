"""Words to bytes and back, and other people's words to ours."""
