"""Base classes of the estimators; those that the command line uses do not import scikit-learn."""
