"""Above the stages: a config, its run, studies of many runs, search and launchers."""
