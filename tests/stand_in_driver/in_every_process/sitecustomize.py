"""Loads the stand-in for the CUDA driver in every Python process with this folder on its path."""

import os

from stand_in_driver import active_stand_in

active_stand_in(os.environ["TMPDIR"])
