"""Values and pure functions, without input or output, clock or hidden randomness. Imports only settings and errors."""
