"""A list that counts how often it is read."""


class CountedList(list):
    """Counts its iterations, such as those of a loop or of ``set``."""

    n_iterations = 0

    def __iter__(self):
        self.n_iterations += 1
        return super().__iter__()
