"""The binary cache of ranking data: written one block of rows at a time; read whole, memory-mapped, or in passes."""
