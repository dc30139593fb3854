"""Devices: where arrays lie and kernels run, a GPU or, for tests, the host."""

from ranksvm.device.host import HostDevice
from ranksvm.device.names import device_names, open_device
from ranksvm.device.protocol import Device, DeviceArray, Variant

__all__ = ["Device", "DeviceArray", "HostDevice", "Variant", "device_names", "open_device"]
