"""`python -m acefraud`: the same as the `acefraud` command."""

from acefraud.cli import main

if __name__ == "__main__":
    main()
