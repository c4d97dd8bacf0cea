"""Simulated interaction logs in official formats, from a latent truth that is known."""

from harmonrank_lab.worlds.raw._block import Block, LogFile
from harmonrank_lab.worlds.raw._kuairand import KuaiRandWorld
from harmonrank_lab.worlds.raw._tenrec import TenrecWorld
from harmonrank_lab.worlds.raw._truth import Truth, probability

__all__ = [
    "LOG_WORLDS",
    "Block",
    "KuaiRandWorld",
    "LogFile",
    "TenrecWorld",
    "Truth",
    "probability",
]

LOG_WORLDS = {"kuairand": KuaiRandWorld, "tenrec": TenrecWorld}
"""The worlds whose log is one of users and items, by name."""
