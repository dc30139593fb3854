"""Attributes that are computed on first use."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

__all__ = ["cached_property"]

Value = TypeVar("Value")


class cached_property(Generic[Value]):  # noqa: N801 (the name of functools')
    """`functools.cached_property` without its lock.

    Before Python 3.12 the original holds a lock for all objects of a class; a child process that is forked meanwhile
    waits for it forever. Here two threads may both compute the value; one result is kept.

    Parameters
    ----------
    function : callable
        Takes an object and returns the value.
    """

    def __init__(self, function: Callable[[Any], Value]):
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Value: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> Self | Value:
        if instance is None:
            return self
        value = instance.__dict__[self.name] = self.function(instance)
        return value
