"""Text matching, patch parsing and hunk application for the edit tools."""
