"""`python -m harmonrank` is `harmonrank`."""

from harmonrank.cli import main

main()
