"""The embedded engine: every role without a key, a network or a download.

Imports `curation`, `storage`, `facts`, `rules`, `core` and the protocols of `roles`.
"""
