"""Boosted rule induction: conditions that best explain what is still got wrong."""
