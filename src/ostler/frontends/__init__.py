"""Whatever people and programs look through. Siblings never meet."""
