"""What is said over HTTP: what the service takes, and what it sends and the clients read.

May import core, display and errors. `answers` holds what the service sends, `bodies` what callers send.
"""
