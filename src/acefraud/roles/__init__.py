"""The roles as users meet them: embedded by default, or played by a language model that is named."""
