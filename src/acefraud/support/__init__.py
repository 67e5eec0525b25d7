"""Small tools for every room: checks of arguments, times, array types, waiting, files that ship with the package."""
