# The instruction set that all compiled loops run with: a number of the C++ enumeration.
cdef int chosen
