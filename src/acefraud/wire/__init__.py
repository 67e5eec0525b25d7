"""What is said over HTTP: what the service takes, and what it sends and the clients read.

May import core, display and errors. `answer` says what all answers have in common; `decisions` and `playbook` hold
them. `bodies` holds what callers send.
"""
