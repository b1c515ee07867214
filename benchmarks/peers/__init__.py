"""The same work as other frameworks do it, for a harness that measures them one after the other."""
