"""Measuring: figures with intervals, the three modes side by side, and the report."""
