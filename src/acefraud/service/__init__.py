"""The decision service: the loop over HTTP, on a SQLite file or on PostgreSQL. May import every folder but cli.

`app.py` builds the application, `routes/` has one file for each kind of resource, `server.py` runs the processes.
"""
