"""How well a fused score ranks."""
