"""The default: coordinates, their density, heads, terms, and the scorer."""
