"""The kernel language: an ordinary Python function over blocks, translated to block IR.

What is known when a kernel is compiled (static parameters, shapes of blocks, closures) is simply run; what touches a block becomes
an operation. The names that a kernel may use stand in `language`; `translator.translate` makes the kernel.
"""
