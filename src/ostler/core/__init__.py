"""The words every room shares: plain values that survive a wire, and the seams as protocols. Nothing live."""
