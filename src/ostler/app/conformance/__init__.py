"""The conformance suite: does an agent keep to the Agent Client Protocol?"""
