"""The service under load, beside a bare route that writes one row."""
