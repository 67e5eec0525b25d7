"""What is known of a transaction: the facts it brings, the facts its text states, and facts from its history.

`extraction` puts them together. May import core, settings and errors.
"""
