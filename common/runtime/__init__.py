"""Tools that know nothing of Simul's roles: logs, files, names, metrics, random numbers, compiled loops."""
