if __name__ != "simul.inference_server":
    raise ImportError("import simul.inference_server: a second name makes a second copy of every module")
