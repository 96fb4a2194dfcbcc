"""What an action or a board of Open Face Chinese is worth: by rule, by expectation, by random deals."""
