"""Workers: processes that perform errands of runs that others drive, and processes that drive runs that others began."""
