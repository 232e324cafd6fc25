"""HDF5 files of captured values, written in transactions by one process or many."""
