"""Starts Mainstay for tools that look for a command with the name of the package, such as uvx."""

import os
import sys
import sysconfig


def main():
    """Becomes the program, which the package puts among the scripts of its environment."""
    beside = os.path.dirname(os.path.abspath(sys.argv[0]))
    name = "mainstay.exe" if os.name == "nt" else "mainstay"
    folders = [beside, sysconfig.get_path("scripts")]
    found = [os.path.join(folder, name) for folder in folders if os.path.isfile(os.path.join(folder, name))]
    if not found:
        sys.exit("mainstay: the program is in none of " + ", ".join(folders))
    if os.name == "nt":
        import subprocess

        sys.exit(subprocess.call([found[0]] + sys.argv[1:]))
    os.execv(found[0], [found[0]] + sys.argv[1:])


if __name__ == "__main__":
    main()
