"""Tools in processes of their own: isolated, sandboxed, limited."""
