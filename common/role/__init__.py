"""What every role has: its run directory and sockets, lifecycle, reports, locks, temporary folders."""
