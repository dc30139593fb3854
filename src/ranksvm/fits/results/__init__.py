"""What a solution becomes: records, dual variables, explanations, summaries."""
