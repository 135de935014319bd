"""# A study on Ray or Slurm

A study is a grid of runs in a TOML file. The same file runs in processes of this machine, as tasks of a
Ray cluster, or as jobs of Slurm, and gives the same numbers. This page really runs it on both, with a
Ray cluster of one machine and with submitit's local executor in place of Slurm.
"""

# %% [markdown]
# ## The study

# %%
from pathlib import Path

Path("small.toml").write_text("""
title = "Two methods on a few digits"

[fixed]
dataset = "digits"
per_class = 20
memory = 50
width = 4

[axes]
method = ["finetune", "slda"]
seed = [0]
""")

# %% [markdown]
# `--dry-run` prints all runs, whether each is done, and an estimate of the cost. On the command line:
# `sterad study small.toml --dry-run`.

# %%
from sterad.cli import main

main("study small.toml --dry-run".split())

# %% [markdown]
# ## On Ray
#
# Without `--address`, a cluster is started here for the duration of the study. With `--address
# HOST:PORT`, runs go to yours: the code and, if needed, the data are sent, and files of finished runs
# are sent back, so that no shared disk is needed. A run whose worker dies is started again.

# %%
main("study small.toml --out runs-ray --launcher ray --workers 2".split())

# %% [markdown]
# ## On Slurm
#
# `--launcher slurm --partition NAME` submits the runs as an array of jobs. Preempted jobs continue
# from their checkpoints. `--cluster local` runs the same jobs as processes of this machine: try your
# study with it before you submit hundreds.

# %%
main("study small.toml --out runs-slurm --launcher slurm --cluster local".split())

# %% [markdown]
# ## The same numbers
#
# The id of a run is a hash of its values, and its result does not depend on the launcher. Both folders
# have the same runs with the same accuracy matrices, to the last bit:

# %%
from sterad.results.run_directory import read_records

on_ray, on_slurm = (
    read_records(Path(folder))[0] for folder in ("runs-ray", "runs-slurm")
)
for first, second in zip(on_ray, on_slurm, strict=True):
    assert (first.id, first.accuracy_matrix) == (second.id, second.accuracy_matrix)
    print(f"{first.id}: {first.final_average_accuracy:.2%}, equal")

# %% [markdown]
# ## Continue
#
# A study runs only what is missing. After an interruption, a failed job, or a new seed in the file, the
# same command does the rest:

# %%
text = Path("small.toml").read_text().replace("seed = [0]", "seed = [0, 1]")
Path("small.toml").write_text(text)
main("study small.toml --out runs-ray --workers 1".split())
