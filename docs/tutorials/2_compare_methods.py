"""# Compare methods with error bars

The difference between two single runs can be chance. This tutorial compares five methods over
several seeds, tests whether their differences are significant, and draws them with error bars.
"""

# %% [markdown]
# ## Runs
#
# A run is a method, a dataset, a stream, a seed and their values. Its id is a hash of all of them: a
# finished run is read from disk, and an interrupted one continues. The values here are small, so that
# this page takes seconds. They do not show how good the methods are;
# [our results](../../reproduction/README.md) do. `slda` and `randumb` are exact on pixels and train no network; `randumb`, which uses random
# features, is the control: a network that is not more accurate has learned nothing useful.

# %%
from pathlib import Path

from sterad import run
from sterad.engine import Execution

METHODS = ("finetune", "er", "agd-fd", "slda", "randumb")
SEEDS = range(3)
small = {
    "dataset": "digits",
    "per_class": 40,
    "test_per_class": 20,
    "width": 4,
    "memory": 100,
}
fields = {"agd-fd": {"views": 2, "projection": 32}, "randumb": {"projection": 500}}
records = {
    (method, seed): run(
        method=method,
        stream="clear",
        seed=seed,
        execution=Execution(threads=1),
        **small,
        **fields.get(method, {}),
    )
    for method in METHODS
    for seed in SEEDS
}
record = records["er", 0]
print(record.id)
print(f"{record.final_average_accuracy:.1%} in {record.seconds:.1f} s")

# %% [markdown]
# A record has the accuracy matrix, its [metrics](../metrics.md), the accuracy along the stream, the
# cost, and where it was made.

# %%
for row in record.accuracy_matrix:
    print("  ".join("  - " if cell is None else f"{cell:4.0%}" for cell in row))
print(f"forgetting {record.average_forgetting:.1%}")
print(f"{record.images_per_step:.0f} images through the network per step")

# %% [markdown]
# ## Mean, spread, interval
#
# `summarize` has the mean and the sample standard deviation; `margin` is half the width of the 95 %
# interval of the mean, which is wide for three seeds.

# %%
from sterad.results.statistics import summarize

summaries = {
    method: summarize(
        100 * records[method, seed].final_average_accuracy for seed in SEEDS
    )
    for method in METHODS
}
for method, summary in summaries.items():
    spread = f"± {summary.std:4.1f}, interval ± {summary.margin:.1f}"
    print(f"{method:9} {summary.mean:5.1f} {spread}")

# %% [markdown]
# ## Is a difference real?
#
# All methods see the same streams for the same seeds, so that differences are compared seed by seed:
# a paired t-test, with Holm's correction because several methods are compared with the best one. The
# tables of `sterad report` mark methods by this rule.

# %%
from sterad.results.statistics import rank_methods

columns = [
    {seed: records[method, seed].final_average_accuracy for seed in SEEDS}
    for method in METHODS
]
ranking = rank_methods(columns)
print("best, or not significantly worse:", [METHODS[index] for index in ranking.best])

# %% [markdown]
# ## Error bars along the stream

# %%
from matplotlib.figure import Figure

figure = Figure(figsize=(7, 3.6))
axes = figure.subplots()
for method, color in zip(
    METHODS, ("#8a8a8a", "#0072b2", "#ce5300", "#009e73", "#cc79a7"), strict=True
):
    curves = [
        [(moment.samples, moment.accuracy) for moment in records[method, seed].moments]
        for seed in SEEDS
    ]
    samples = [point[0] for point in curves[0]]
    points = [
        summarize(100 * accuracy for _, accuracy in column)
        for column in zip(*curves, strict=True)
    ]
    means, spreads = [point.mean for point in points], [point.std for point in points]
    axes.errorbar(samples, means, spreads, label=method, color=color, capsize=3)
axes.set(
    xlabel="images of the stream", ylabel="accuracy on seen classes, %", ylim=(0, 105)
)
axes.legend(
    frameon=False,
    ncol=len(METHODS),
    loc="lower left",
    bbox_to_anchor=(0, 1),
    fontsize=9,
)
figure.savefig("curves.svg")

# %% [markdown]
# ## From the shell
#
# The same as a study, which runs several processes and continues where it was interrupted, and a report
# with tables and all figures:
#
# ```sh
# sterad study digits --workers 2
# sterad report runs
# ```
#
# The report also works on the runs of this page. It prints the path of the HTML page, and `report.md`
# has the same tables:

# %%
from sterad.cli import main

main(["report", "runs", "--quiet"])
print(Path("runs/report.md").read_text().partition("## Average forgetting")[0])
