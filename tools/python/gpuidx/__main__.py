"""python -m gpuidx: the command-line program that lies in this package."""
import os
import sys


def main() -> None:
    program = os.environ.get("GPUIDX_PROGRAM") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpuidx")
    if not os.access(program, os.X_OK):
        sys.exit("the package has no program at %s" % program)
    os.execv(program, [program] + sys.argv[1:])


if __name__ == "__main__":
    main()
