"""The user's stored sessions as the settings say: stores, logs, cleanup, redacted exports."""
