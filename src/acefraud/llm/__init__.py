"""Roles played by language models: asked for by name, never by a key that lies in the environment."""
