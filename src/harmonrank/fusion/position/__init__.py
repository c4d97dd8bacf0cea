"""Position bias: feedback as if every place had been looked at."""
