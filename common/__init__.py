"""What all roles agree on. Imports no role."""

if __name__ != "simul.common":
    raise ImportError("import simul.common: a second name makes a second copy of every module")
