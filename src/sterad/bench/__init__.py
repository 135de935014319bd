"""Speed as ratios: what a step costs over the bare network, measured on the machine at hand."""
