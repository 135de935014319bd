"""A pretrained network that stays as it is: each image is encoded once, the memory keeps features.

sterad train agd-fd --encoder examples/pretrained_backbone.py:backbone --frozen --augmentation none
"""

from torch import nn

from sterad import RunConfig, run


def backbone() -> nn.Module:
    """Return your network without its last layer; this small one stands for it."""
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())


if __name__ == "__main__":
    values = {"encoder": f"{__file__}:backbone", "frozen": True, "augmentation": "none"}
    record = run(RunConfig.of(method="agd-fd", dataset="digits", **values))
    print(f"final average accuracy {record.final_average_accuracy:.1%}")
