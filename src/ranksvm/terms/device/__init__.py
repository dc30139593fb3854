"""Data terms (the loss as a function of the weights) for rows on a device, such as a GPU."""
