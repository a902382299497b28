"""The ground a session stands on: paths that cannot leave, files in their own form, and a way back."""
