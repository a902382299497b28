"""The headless face: one prompt, no questions."""
