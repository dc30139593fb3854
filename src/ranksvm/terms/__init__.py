"""Data terms (the loss as a function of the weights), for rows in memory, in a file, on GPUs or divided into parts."""
