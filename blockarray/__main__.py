"""``python -m blockarray PROGRAM.py``: run a NumPy program on ``blockarray``; ``--help`` says the rest."""

from blockarray.runner.command import main

if __name__ == "__main__":
    raise SystemExit(main())
