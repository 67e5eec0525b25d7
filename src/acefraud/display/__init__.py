"""What a person sees of a value: short reprs, tables in notebooks and data frames, with personal data masked.

Imports nothing but errors, so that every layer can use it.
"""
