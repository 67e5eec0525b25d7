"""The roles on language models: prompts, masking, reading replies. Imports what `acefraud.roles` may import.

`build.py` creates the roles from settings. Every prompt is a file in `templates/`.
"""
