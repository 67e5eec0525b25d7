"""The answers of the service: what it sends is what the clients read. May import core, display and errors.

`answer` says what all of them have in common; `decisions` and `playbook` hold them.
"""
