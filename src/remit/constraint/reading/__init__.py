"""JSON as models write it: found, read leniently, repaired."""
