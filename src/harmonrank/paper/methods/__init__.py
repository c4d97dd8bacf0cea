"""The methods of the paper."""
