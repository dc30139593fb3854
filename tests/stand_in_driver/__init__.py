"""A stand-in for the CUDA driver, so that tests run the real cuda-core, cuda-bindings and NVRTC without a GPU."""

from stand_in_driver.driver import MODES, Driver, active_stand_in, missing, stand_in

__all__ = ["MODES", "Driver", "active_stand_in", "missing", "stand_in"]
