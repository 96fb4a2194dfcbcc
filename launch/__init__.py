if __name__ != "simul.launch":
    raise ImportError("import simul.launch: a second name makes a second copy of every module")
