"""Reserve, charge and foresee what a run spends."""
