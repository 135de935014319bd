"""What methods are built on: Learner, Replay and its parts, teacher, task boundaries."""
