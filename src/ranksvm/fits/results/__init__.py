"""Results of a fit: records, dual variables, explanations, summaries."""
