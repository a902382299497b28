"""The conductor: it plays turns with a backend, sends every call through the one door and publishes what happens."""
