"""Files: outputs that appear complete, and decoding of what is read back."""
