"""``python -m thinleaf`` is the command line."""

from thinleaf.cli import main

if __name__ == "__main__":
    main()
