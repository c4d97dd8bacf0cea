"""Reading: files, folders and stores to checked rows."""
