"""Choosing the few bullets that matter for a transaction, in five stages."""
