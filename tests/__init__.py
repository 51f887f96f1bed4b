"""The tests; the folders say what each kind is for."""
