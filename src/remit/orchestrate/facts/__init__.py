"""Complete a report to an arrival: everything the kernel needs and may not compute."""
