"""The demo: a support desk in a folder, and the story that `remit demo` plays there. The files are copied, not imported."""
