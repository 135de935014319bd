"""Above the flow: a config, the run that it asks for, and studies of many."""
