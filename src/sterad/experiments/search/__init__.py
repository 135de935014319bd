"""Hyperparameter search with Optuna, on images and seeds that no table reports."""
