"""What methods are built on: Learner, Replay and its parts, additions, task boundaries."""
