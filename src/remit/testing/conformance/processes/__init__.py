"""What the processes on one store share: leases, errands, letters, bells, halts."""
