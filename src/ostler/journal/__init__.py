"""What remembers: append-only records of a session, and what is made from them."""
