"""The composition root: one file per thing it joins. No room imports it."""
