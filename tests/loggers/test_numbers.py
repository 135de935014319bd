from sterad.loggers.numbers import numbers


def test_each_kind_has_its_curves() -> None:
    progress = {"event": "progress", "step": 3, "steps": 9, "seconds": 1.5, "loss": 0.25}
    assert numbers(progress) == {"loss": 0.25}
    end = {"event": "end", "final_average_accuracy": 0.5, "anytime_accuracy": 0.75, "step": 9}
    assert numbers(end) == {"final_average_accuracy": 0.5, "anytime_accuracy": 0.75}


def test_what_is_absent_is_no_zero() -> None:
    assert numbers({"event": "progress", "loss": None}) == {}
    told = {"event": "evaluation", "accuracy": 0.0, "seen": 2, "cells": [None, 0.5]}
    assert numbers(told) == {"accuracy": 0.0, "seen": 2, "accuracy/2": 0.5}


def test_kinds_that_nobody_foresaw_have_none() -> None:
    assert numbers({"event": "something-new", "loss": 3.0}) == {}
