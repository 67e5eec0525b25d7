"""Benchmarks that anybody can repeat. They use the public API only, so they measure what users run."""
