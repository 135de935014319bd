"""The commands that run a number or a whole table of the paper, as one pastes them into a shell."""

from sterad.paper.numbers import Number
from sterad.paper.protocol import special


def study_command(study: str, out: str) -> str:
    """Return the command of a study.

    >>> study_command("paper-clear", "runs")
    'sterad study studies/paper-clear.toml --out runs'
    """
    return f"sterad study studies/{study}.toml --out {out}"


def train_command(number: Number, done: frozenset[int], out: str) -> str:
    """Return the line that runs the missing seeds of a number; all, where none is missing."""
    values = {**number.settings, **special(number.settings), "out": out}
    options = [f"--{k.replace('_', '-')} {v}" for k, v in values.items() if k != "method"]
    missing = [seed for seed in range(number.runs) if seed not in done] or range(number.runs)
    train = " ".join((f"sterad train {values['method']} --tuned cifar100", *options))
    return f"for seed in {' '.join(map(str, missing))}; do {train} --seed $seed; done"
