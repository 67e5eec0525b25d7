"""Evaluation: metrics with intervals, the three modes beside LightGBM on the same cases, and the report.

Imports only the public names of `acefraud` and `acefraud.errors`, as anybody who evaluates the package would.
"""
