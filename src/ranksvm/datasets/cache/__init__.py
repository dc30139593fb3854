"""The binary cache of ranking data: written block by block, read whole, mapped, or in passes."""
