"""What a command line says: options that several commands share, and the files it names."""
