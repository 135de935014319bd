from pathlib import Path
from typing import Any

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from sterad.loggers import LOGGERS

CONFIG = {"method": {"name": "er"}, "seed": 0}


def test_curves_exclude_steps_after_the_last_checkpoint(
    killed: list[Any], resumed: list[Any], tmp_path: Path
) -> None:
    for events in (killed, resumed):
        with LOGGERS["tensorboard"]("mine-s0", tmp_path / "mine-s0", CONFIG) as logger:
            for event in events:
                logger.emit(event)
    read = EventAccumulator(str(tmp_path / "mine-s0" / "tensorboard"))
    read.Reload()
    assert [(event.step, event.value) for event in read.Scalars("loss")] == [
        (1, 2.5),
        (2, 1.5),
        (3, 1.25),
    ]
    assert [(event.step, event.value) for event in read.Scalars("accuracy")] == [
        (2, 0.5),
        (4, 0.75),
    ]
    assert [event.step for event in read.Scalars("accuracy/2")] == [4]
    assert [event.value for event in read.Scalars("final_average_accuracy")] == [0.75]
    first, second, _ = (event.wall_time for event in read.Scalars("loss"))
    assert abs(second - first - 0.5) < 1e-3, "wall times follow the seconds of the run"
    assert b'"name": "er"' in read.Tensors("config/text_summary")[0].tensor_proto.string_val[0]


def test_events_before_a_checkpoint_survive_a_kill(killed: list[Any], tmp_path: Path) -> None:
    logger = LOGGERS["tensorboard"]("mine-s0", tmp_path / "mine-s0", CONFIG)
    for event in killed[:-1]:
        logger.emit(event)
    read = EventAccumulator(str(tmp_path / "mine-s0" / "tensorboard"))  # the writer is still open
    read.Reload()
    assert [event.step for event in read.Scalars("loss")] == [1, 2]
    logger.__exit__(None, None, None)


def test_nothing_is_written_before_the_first_event(tmp_path: Path) -> None:
    with LOGGERS["tensorboard"]("mine-s0", tmp_path / "mine-s0", CONFIG):
        pass
    assert list(tmp_path.iterdir()) == []
