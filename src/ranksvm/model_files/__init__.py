"""Model files: plain arrays and checked JSON, and the classes that they may contain."""
