"""Figures that anybody can measure again, all of them through the public API: what is measured is what users run."""
