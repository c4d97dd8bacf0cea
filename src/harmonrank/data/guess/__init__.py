"""Guessing which column of a log is what, for a person to correct."""

from harmonrank.data.guess._guess import Guess, guess_schema
from harmonrank.data.guess._text import commented_toml

__all__ = ["Guess", "commented_toml", "guess_schema"]
