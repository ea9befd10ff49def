"""Run a NumPy program with ``numpy`` replaced by ``blockarray``: ``python -m blockarray PROGRAM.py``.

======================  ==========================================================================
module                  what it does
======================  ==========================================================================
``command``             the command line, and what each mode prints
``program``             one program: its file, its arguments, running it as ``__main__``
``substitution``        what ``import numpy`` means in the program's own files
``tracebacks``          leaves the program's own lines in an uncaught traceback
``recording``           runs a program in a process of its own and records what it left
``values``              finds, stores and loads the arrays and numbers that a program left
``agreement``           compares two outputs and two sets of values
``comparison``          ``--compare``: two processes, one verdict
``report``              the text that ``--compare`` prints
======================  ==========================================================================
"""
