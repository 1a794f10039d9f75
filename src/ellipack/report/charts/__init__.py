"""The charts of the page, each a function from a record to a chart, or to None where there is nothing to draw."""
