"""The rule language in English, the scorecard of general knowledge, and rule induction from labelled history.

`english` writes a condition and reads it back, `bullet_text` reads a whole bullet. The formal syntax is
`acefraud.core.condition`. May import core, settings and errors.
"""
