"""The small embedded model that Ostler can install and run itself."""
