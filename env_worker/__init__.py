if __name__ != "simul.env_worker":
    raise ImportError("import simul.env_worker: a second name makes a second copy of every module")
