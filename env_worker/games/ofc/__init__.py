"""Open Face Chinese, Pineapple, for two or three players: rules, evaluator, Fantasyland solver, scripted players."""
