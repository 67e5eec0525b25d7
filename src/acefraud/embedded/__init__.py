"""The embedded engine: every role played with no key, no network and no download."""
