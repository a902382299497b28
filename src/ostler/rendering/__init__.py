"""Renders transcript blocks as terminal lines, for every frontend that prints."""
