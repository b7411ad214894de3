"""``python -m contextfold`` is the command ``contextfold``."""

from contextfold.cli import main

if __name__ == "__main__":
    main()
