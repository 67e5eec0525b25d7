"""Calls to language models. May import rules, facts, core, settings and errors.

`client.py` lists the steps of a call: cache, limits, retries, budget. `provider.py` sends it, keeps
the connections and translates the errors of vendors' packages, which are imported only when a call is sent.
`synchronous.py` is for callers that do not await.
"""
