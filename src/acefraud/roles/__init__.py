"""Agent, judge, reflector and embedder: embedded by default, or on a language model that you name.

`protocols.py` says what each role does; `embedded/` and `model/` implement it. May import curation, storage, datasets,
llm, facts, rules, core, settings and errors.
"""
