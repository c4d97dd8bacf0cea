"""Simulated interaction logs in official formats, from a latent truth that is known."""

from harmonrank_lab.worlds.raw._kuairand import KuaiRandWorld
from harmonrank_lab.worlds.raw._tenrec import TenrecWorld
from harmonrank_lab.worlds.raw._truth import Block

__all__ = ["Block", "KuaiRandWorld", "TenrecWorld"]
