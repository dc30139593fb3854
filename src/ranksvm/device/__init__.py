"""Devices that hold arrays and run kernels: a GPU or, for tests, the host (`host.HostDevice`)."""

from ranksvm.device.calibration import DeviceCosts, calibrate_device
from ranksvm.device.names import device_names, open_device
from ranksvm.device.protocol import Device, DeviceArray, Variant

__all__ = ["Device", "DeviceArray", "DeviceCosts", "Variant", "calibrate_device", "device_names", "open_device"]
