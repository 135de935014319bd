"""Stage 7: laws and directions on the unit sphere, in any dimension."""

import sterad.sphere.gaussian_divergence  # noqa: F401  registers kl_divergence
from sterad.sphere.angular_central_gaussian import AngularCentralGaussian
from sterad.sphere.angular_gaussian import AngularGaussian, equivalent_temperature
from sterad.sphere.directions import moving_means, random_orthonormal, regular_simplex
from sterad.sphere.distribution import SphereDistribution
from sterad.sphere.elliptically_symmetric_angular_gaussian import (
    EllipticallySymmetricAngularGaussian,
)
from sterad.sphere.fast_log_kernel import FastLogKernel, fast_log_kernel
from sterad.sphere.fit import Fit
from sterad.sphere.general_angular_gaussian import GeneralAngularGaussian
from sterad.sphere.goodness_of_fit import (
    kolmogorov_smirnov_test,
    likelihood_ratio_test,
    vuong_test,
)
from sterad.sphere.law import LAWS, SphericalLaw
from sterad.sphere.mixture import SphericalMixture
from sterad.sphere.power_spherical import PowerSpherical
from sterad.sphere.projected_student_t import ProjectedStudentT
from sterad.sphere.quadrature import log_area
from sterad.sphere.rotational_law import RotationalLaw
from sterad.sphere.spherical_cauchy import SphericalCauchy
from sterad.sphere.uniform import Uniform
from sterad.sphere.uniformity import (
    HypothesisResult,
    ajne_test,
    gine_test,
    rayleigh_test,
)
from sterad.sphere.von_mises_fisher import VonMisesFisher
from sterad.sphere.watson import Watson

__all__ = [
    "LAWS",
    "AngularCentralGaussian",
    "AngularGaussian",
    "EllipticallySymmetricAngularGaussian",
    "FastLogKernel",
    "Fit",
    "GeneralAngularGaussian",
    "HypothesisResult",
    "PowerSpherical",
    "ProjectedStudentT",
    "RotationalLaw",
    "SphereDistribution",
    "SphericalCauchy",
    "SphericalLaw",
    "SphericalMixture",
    "Uniform",
    "VonMisesFisher",
    "Watson",
    "ajne_test",
    "equivalent_temperature",
    "fast_log_kernel",
    "gine_test",
    "kolmogorov_smirnov_test",
    "likelihood_ratio_test",
    "log_area",
    "moving_means",
    "random_orthonormal",
    "rayleigh_test",
    "regular_simplex",
    "vuong_test",
]
