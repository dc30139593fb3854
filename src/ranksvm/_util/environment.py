"""The environment on which a result may depend: versions, processor, threads."""

import importlib.metadata
import platform

import ranksvm._compiled.instruction_set as instruction_set
from ranksvm._util.threads import available_cpus

__all__ = ["environment"]

_DEPENDENCIES = ("numpy", "scipy", "scikit-learn")


def environment() -> dict[str, str]:
    """Versions of ranksvm and its dependencies, the system, and the instruction set of the compiled loops.

    Returns
    -------
    dict of str to str
        Names and values, in display order. ``"instruction set"`` is the one in use (set the environment
        variable ``RANKSVM_INSTRUCTION_SET`` for another), ``"available"`` lists all that this processor has, and
        ``"processors"`` is the number of processors that this process may use.

    Examples
    --------
    >>> from ranksvm import environment
    >>> "numpy" in environment()
    True
    """
    versions = {name: importlib.metadata.version(name) for name in ("ranksvm", *_DEPENDENCIES)}
    return {
        **versions,
        "Python": platform.python_version(),
        "system": platform.platform(),
        "processors": str(available_cpus()),
        "instruction set": instruction_set.current(),
        "available": ", ".join(instruction_set.available()),
    }
