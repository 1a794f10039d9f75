"""The local predictors: what a neighbourhood says about the point in its middle."""
