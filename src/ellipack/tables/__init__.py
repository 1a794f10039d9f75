"""Tables in Python: `TableRegressor`, `run` and `load`, for data frames with text, dates and missing values."""
