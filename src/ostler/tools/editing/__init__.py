"""How a change is found in a text and made there: the matching ladder, the patch readers and the hunk applier."""
