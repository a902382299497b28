"""Transcript blocks as lines of text, for every face that prints."""
