"""What is shown of an image: batched crops, flips and colours, one set of parameters per sample."""

from sterad.views.recipes import RECIPES, Full, Nothing, Partial, Recipe

__all__ = ["RECIPES", "Full", "Nothing", "Partial", "Recipe"]
