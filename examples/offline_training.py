"""Use the losses in ordinary training: several epochs over all data, no stream and no memory.

`sterad train joint --law angular-gaussian` does this with views, a schedule and a record.
"""

import torch

from sterad.data.digits import Digits
from sterad.encoders import ResNet18, build_network
from sterad.losses.class_posterior import posterior_loss
from sterad.sphere import AngularGaussian, fast_log_kernel
from sterad.streams.batch import to_unit

EPOCHS, BATCH_SIZE, DIMENSION = 5, 64, 16

digits = Digits().load()
images, test_images = (
    to_unit(torch.from_numpy(part)) for part in (digits.train_images, digits.test_images)
)
labels = torch.from_numpy(digits.train_labels)

rng = torch.Generator().manual_seed(0)
network = build_network(lambda: ResNet18(digits.input_shape, width=8), "mlp", DIMENSION, rng)
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
log_density = fast_log_kernel(AngularGaussian, AngularGaussian.concentration_of(0.1), DIMENSION)

for epoch in range(EPOCHS):
    network.train()
    for indices in torch.randperm(len(images), generator=rng).split(BATCH_SIZE):
        z = network(images[indices], unit=True)  # the direction of class c is the c-th basis vector
        loss = posterior_loss(z, labels[indices], log_density, reduction="mean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    network.eval()
    with torch.no_grad():
        predictions = network(test_images, unit=True)[:, : digits.classes].argmax(dim=1)
    accuracy = (predictions.numpy() == digits.test_labels).mean()
    print(f"epoch {epoch + 1}: test accuracy {accuracy:.1%}")
