"""Data terms that are sums over parts of the rows, and the backends that hold the parts."""
