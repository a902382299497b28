"""The full-screen client on Textual. Only this package imports Textual."""
