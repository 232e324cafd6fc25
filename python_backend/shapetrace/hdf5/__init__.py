"""Saves captured values to HDF5 files, in transactions, from one process or many.

Modules:

- ``saver``: ``H5PYSaverCallback``
- ``encoding``: a value as plain arrays, with a description of its structure
- ``decoding``: the value of such arrays
- ``storage``: the file behind a saver: opened late, and again after a failure
- ``entries``: the datasets of one name
- ``columns``: one growing dataset with a row for each value
- ``row_indices``: index datasets that grow with a column: iterations, ranks, order
- ``transactions``: a file whose writes appear together or not at all
- ``journal``: the journal that finishes a commit after a crash
- ``library``: the only importer of h5py
- ``shards``: files of single ranks, and the file that shows them as one
- ``rank``: the rank of this process
- ``missing``: notes in the file on values that could not be saved
- ``reading``: reads values from a file, and writes nothing
- ``column_statistics``: statistics of a column, read piece by piece
- ``file_summary``: what ``show`` prints of a file
- ``reader_process``: runs ``file_summary`` in a process of its own, with limits
"""
