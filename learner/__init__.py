if __name__ != "simul.learner":
    raise ImportError("import simul.learner: a second name makes a second copy of every module")
