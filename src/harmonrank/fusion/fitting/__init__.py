"""The rows that a method is fitted on."""
