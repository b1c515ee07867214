"""The hands: the imperative shell around the kernel."""
