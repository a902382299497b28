"""The loop's guests: small objects called at its named points, each with one duty."""
