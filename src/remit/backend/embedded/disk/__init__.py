"""The file of a store: its tables, its one writer, its locks and its failures."""
