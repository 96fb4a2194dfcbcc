"""What tests share: a stand-in learner and a server that can be stepped."""
