"""Base classes of the estimators; free of scikit-learn where the command line uses them."""
