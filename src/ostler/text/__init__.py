"""Small text helpers without dependencies on the rest of the code."""
