"""# Laws on the sphere

Directions, normalized embeddings and compositions are points on a unit sphere. `sterad.sphere` has laws
for them as `torch.distributions`: batched, differentiable, in any dimension. [The
mathematics](../mathematics.md) has the formulas.
"""

# %% [markdown]
# ## A law
#
# A law has a mean direction and a concentration; concentration 0 is the uniform law. `log_prob` is the
# log-density with respect to area.

# %%
import math

import torch

from sterad.sphere import (
    LAWS,
    AngularGaussian,
    PowerSpherical,
    SphericalCauchy,
    VonMisesFisher,
)

rng = torch.Generator().manual_seed(0)
north = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
law = VonMisesFisher(north, concentration=8.0)
points = law.sample((5,), generator=rng)
print(points)
print(law.log_prob(points))
print("laws for losses:", *LAWS, sep="\n  ")

# %% [markdown]
# The density integrates to 1 over the sphere. In three dimensions, the cosine with the mean direction
# is uniform under the uniform law, so that a simple rule checks it:

# %%
cosine = torch.linspace(-1, 1, 20_001, dtype=torch.float64)
for cls in (VonMisesFisher, AngularGaussian, PowerSpherical, SphericalCauchy):
    density = cls(north, 8.0).log_kernel(cosine).exp()
    mass = torch.trapezoid(density, cosine) / 2
    print(f"{cls.__name__:16} mass {mass:.6f}, density at the mode {density[-1]:.2f}")

# %% [markdown]
# ## Shapes of laws
#
# `concentration_of(variance)` gives the concentration of each law for a variance. The figure shows the
# logarithm of the density relative to the uniform law: the laws differ in their tails.

# %%
from matplotlib.figure import Figure

figure = Figure(figsize=(7, 3.4))
axes = figure.subplots()
angle = torch.linspace(0, math.pi, 300, dtype=torch.float64)
colors = ("#0072b2", "#ce5300", "#009e73", "#cc79a7")
for cls, color in zip(
    (VonMisesFisher, AngularGaussian, PowerSpherical, SphericalCauchy),
    colors,
    strict=True,
):
    law = cls(north, cls.concentration_of(0.2))
    axes.plot(
        angle * 180 / math.pi,
        law.log_kernel(angle.cos()),
        label=cls.__name__,
        color=color,
    )
axes.set(xlabel="angle with the mean direction, degrees", ylabel="log-density")
axes.set_ylim(-12, 4)
axes.legend(frameon=False, fontsize=9)
figure.savefig("shapes.svg")

# %% [markdown]
# ## High dimensions
#
# Embeddings have hundreds of dimensions. There, Bessel functions underflow and series cancel; the laws
# here integrate numerically around the peak of the integrand, so that nothing does.

# %%
for dimension in (3, 128, 2048):
    e1 = torch.eye(dimension, dtype=torch.float64)[0]
    law = AngularGaussian(e1, concentration=30.0)
    near, far = law.log_prob(e1), law.log_prob(-e1)
    print(f"d = {dimension:4}: log p(μ) = {near:9.2f}, log p(-μ) = {far:9.2f}")

# %% [markdown]
# ## Gradients and maximum likelihood
#
# Parameters may require gradients. Here the mean direction and the concentration of 500 points are
# found by gradient ascent on the likelihood.

# %%
truth = VonMisesFisher(torch.tensor([0.6, 0.0, 0.8], dtype=torch.float64), 12.0)
data = truth.sample((500,), generator=rng)
direction = torch.randn(3, dtype=torch.float64, generator=rng).requires_grad_()
log_kappa = torch.zeros((), dtype=torch.float64, requires_grad=True)
optimizer = torch.optim.Adam([direction, log_kappa], lr=0.1)
for _ in range(200):
    fitted = VonMisesFisher(
        torch.nn.functional.normalize(direction, dim=0), log_kappa.exp()
    )
    optimizer.zero_grad()
    loss = -fitted.log_prob(data).mean()
    loss.backward()
    optimizer.step()
mean, kappa = fitted.mean_direction.detach(), float(fitted.concentration.detach())
print(f"mean direction {mean.numpy().round(2)}, concentration {kappa:.1f}")

# %% [markdown]
# ## Classes around directions
#
# A law around one fixed direction per class is a classifier: the posterior of class c at z is
# proportional to the density around its direction. AGD-FD and vMF-FD train networks with this loss;
# the vertices of a regular simplex are the directions that are farthest apart.

# %%
from sterad.losses import posterior_loss
from sterad.sphere import fast_log_kernel, regular_simplex

directions = regular_simplex(4, 3).double()
print((directions @ directions.T).numpy().round(3))
labels = torch.arange(4).repeat_interleave(50)
z = VonMisesFisher(directions[labels], 6.0).sample(generator=rng)
log_density = fast_log_kernel(VonMisesFisher, 6.0, 3)
predicted = log_density(z @ directions.T).argmax(dim=1)
accuracy = (predicted == labels).double().mean()
loss = posterior_loss(z, labels, log_density, directions, reduction="mean")
print(f"accuracy {accuracy:.1%}, mean posterior loss {loss:.3f}")

# %%
figure = Figure(figsize=(4.2, 3.6))
axes = figure.add_subplot(projection="3d")
axes.set_facecolor("none")
for c, color in enumerate(colors):
    axes.scatter(*z[labels == c].T.numpy(), s=9, color=color, label=f"class {c}")
    axes.quiver(0, 0, 0, *(1.15 * directions[c]).tolist(), color=color)
axes.set_box_aspect((1, 1, 1), zoom=1.4)
axes.set_axis_off()
figure.savefig("classes.svg")
