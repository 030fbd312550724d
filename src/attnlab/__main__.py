"""python -m attnlab: the command line, also if the `attnlab` program is not on the path."""

from attnlab.cli import main

if __name__ == "__main__":
    main()
