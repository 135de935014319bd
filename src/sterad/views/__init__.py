"""Stage 4: augmentation, batched, with parameters per sample."""

from sterad.views.recipes import RECIPES, Full, NoAugmentation, Partial, Recipe

__all__ = ["RECIPES", "Full", "NoAugmentation", "Partial", "Recipe"]
