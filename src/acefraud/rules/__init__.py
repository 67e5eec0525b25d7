"""The rule language in English, the scorecard of general knowledge, and rule induction from labelled history.

`english` writes a condition, `parse_english` reads one, `bullet_text` reads a whole bullet. The formal syntax is
`acefraud.core.condition`. May import core, settings and errors.
"""
